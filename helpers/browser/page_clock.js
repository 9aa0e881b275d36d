// The page's clock. It is the real one until the page has loaded; then it stands still, and moves
// on only in passTime(): no time passes while a policy thinks, and a busy machine shows what a
// quiet one shows.
() => {
  const real = {
    setTimeout: window.setTimeout.bind(window),
    clearTimeout: window.clearTimeout.bind(window),
    setInterval: window.setInterval.bind(window),
    clearInterval: window.clearInterval.bind(window),
    requestAnimationFrame: window.requestAnimationFrame.bind(window),
    cancelAnimationFrame: window.cancelAnimationFrame.bind(window),
    Date: window.Date,
    dateNow: window.Date.now.bind(window.Date),
    perfNow: performance.now.bind(performance),
  };
  let live = true;
  let now = 0; // milliseconds of the page's time since it had loaded
  let wallAtLoad = 0;
  let perfAtLoad = 0;

  // ---- timers, which passTime() runs ----
  const FRAME = 1000 / 60;
  const timers = new Map(); // id -> {id, due, every, call}; every: null for one that runs once
  let lastId = 1000000; // far above the ids of real timers, so that either kind can be cleared
  const add = (due, every, call) => {
    lastId += 1;
    timers.set(lastId, {id: lastId, due, every, call});
    return lastId;
  };
  const callback = (f, args) => {
    if (typeof f === "function") return () => f.apply(window, args);
    return () => (0, eval)(String(f));
  };
  const delay = (ms, least) => Math.max(least, Number(ms) || 0);
  window.setTimeout = (f, ms, ...args) => {
    if (live) return real.setTimeout(f, ms, ...args);
    return add(now + delay(ms, 1), null, callback(f, args));
  };
  window.setInterval = (f, ms, ...args) => {
    if (live) return real.setInterval(f, ms, ...args);
    const every = delay(ms, 4);
    return add(now + every, every, callback(f, args));
  };
  // Timeouts and intervals have their ids in common.
  window.clearTimeout = window.clearInterval = id => {
    if (!timers.delete(id)) real.clearTimeout(id);
  };
  window.requestAnimationFrame = f => {
    if (live) return real.requestAnimationFrame(f);
    const nextFrame = (Math.floor(now / FRAME + 1e-6) + 1) * FRAME;
    return add(nextFrame, null, () => f(performance.now()));
  };
  window.cancelAnimationFrame = id => {
    if (!timers.delete(id)) real.cancelAnimationFrame(id);
  };

  // ---- what the page reads of the time ----
  const wall = () => (live ? real.dateNow() : Math.floor(wallAtLoad + now));
  real.Date.now = wall;
  performance.now = () => (live ? real.perfNow() : perfAtLoad + now);
  window.Date = real.Date.prototype.constructor = new Proxy(real.Date, {
    construct: (target, args, self) =>
      Reflect.construct(target, args.length ? args : [wall()], self),
    apply: () => new real.Date(wall()).toString(),
  });

  // In the capture phase this comes before the page's own onload, whose timers are already ours.
  const stop = () => {
    wallAtLoad = real.dateNow();
    perfAtLoad = real.perfNow();
    live = false;
  };
  window.addEventListener("load", stop, {capture: true, once: true});

  // ---- moving it on ----
  const channel = new MessageChannel();
  let wake = () => {};
  channel.port1.onmessage = () => wake();
  // Lets all promises settle.
  const turn = () => new Promise(done => {
    wake = done;
    channel.port2.postMessage(0);
  });
  // The timer that is due first, of those that are due by `end`; null where there is none.
  const nextDue = end => {
    let next = null;
    for (const timer of timers.values()) {
      if (timer.due > end) continue;
      const first = !next || timer.due < next.due || (timer.due === next.due && timer.id < next.id);
      if (first) next = timer;
    }
    return next;
  };
  // Let `ms` of the page's time pass: run what is due, in order.
  const MOST_CALLBACKS = 3000; // so that it always ends
  const passTime = async ms => {
    const end = now + ms;
    for (let left = MOST_CALLBACKS; left > 0; left--) {
      const next = nextDue(end);
      if (!next) break;
      now = Math.max(now, next.due);
      if (next.every === null) timers.delete(next.id);
      else next.due = now + next.every;
      try {
        next.call();
      } catch (error) {
        real.setTimeout(() => { throw error; }); // it is reported, and stops nothing here
      }
      await turn();
    }
    now = end;
  };
  const sleep = ms => new Promise(done => real.setTimeout(done, ms));
  const atMost = (ms, promise) => Promise.race([promise, sleep(ms)]);
  const forgetTimers = () => timers.clear();

  return {real, turn, sleep, atMost, passTime, forgetTimers};
}
