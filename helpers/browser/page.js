// Runs before every script of every page (Playwright init script). Two things live here: the page's clock, and the
// marking of elements with BrowserGym ids (bids), whose source is BrowserGym's own, put in where MARK and UNMARK stand.
(() => {
  const real = {
    setTimeout: window.setTimeout.bind(window), clearTimeout: window.clearTimeout.bind(window),
    setInterval: window.setInterval.bind(window), clearInterval: window.clearInterval.bind(window),
    requestAnimationFrame: window.requestAnimationFrame.bind(window),
    cancelAnimationFrame: window.cancelAnimationFrame.bind(window),
    Date: window.Date, dateNow: window.Date.now.bind(window.Date), perfNow: performance.now.bind(performance),
  };

  // ---- the clock: real until the page has loaded, then it stands still except in advance() ----
  const FRAME = 1000 / 60;
  let live = true, now = 0, wall0 = 0, perf0 = 0, lastId = 1000000;
  const timers = new Map();
  const add = (due, every, call) => {
    const id = ++lastId;  // far above the ids of real timers, so that either kind can be cleared
    timers.set(id, {id, due, every, call});
    return id;
  };
  const callback = (f, args) => typeof f === "function" ? () => f.apply(window, args) : () => (0, eval)(String(f));
  const delay = (ms, least) => Math.max(least, Number(ms) || 0);
  const clear = id => { if (!timers.delete(id)) real.clearTimeout(id); };  // one id space for timeouts and intervals
  window.setTimeout = (f, ms, ...args) =>
    live ? real.setTimeout(f, ms, ...args) : add(now + delay(ms, 1), null, callback(f, args));
  window.setInterval = (f, ms, ...args) =>
    live ? real.setInterval(f, ms, ...args) : add(now + delay(ms, 4), delay(ms, 4), callback(f, args));
  window.clearTimeout = window.clearInterval = clear;
  window.requestAnimationFrame = f => live ? real.requestAnimationFrame(f)
    : add((Math.floor(now / FRAME + 1e-6) + 1) * FRAME, null, () => f(performance.now()));
  window.cancelAnimationFrame = id => { if (!timers.delete(id)) real.cancelAnimationFrame(id); };
  const wall = () => live ? real.dateNow() : Math.floor(wall0 + now);
  performance.now = () => live ? real.perfNow() : perf0 + now;
  real.Date.now = wall;
  window.Date = real.Date.prototype.constructor = new Proxy(real.Date, {
    construct: (target, args, self) => Reflect.construct(target, args.length ? args : [wall()], self),
    apply: () => new real.Date(wall()).toString(),
  });
  const born = new Map();  // element -> the attributes that marking overwrites, as the document had them
  let body = [], calendar = null;  // copies of what the body holds when it has loaded; jQuery UI's date picker then
  // In the capture phase this comes before the page's own onload, whose timers are already ours.
  window.addEventListener("load", () => {
    for (const e of document.querySelectorAll("*")) born.set(e, ["value", "checked"].map(name => [name, e.getAttribute(name)]));
    wall0 = real.dateNow(); perf0 = real.perfNow(); live = false;
  }, {capture: true, once: true});

  const remember = () => {  // BrowserGym takes the display of core.js away in any case
    const own = [...document.body.childNodes].filter(e => !["reward-display", "click-canvas", "sync-task-cover"].includes(e.id));
    body = own.map(e => e.cloneNode(true));
    calendar = window.jQuery && jQuery.datepicker && {...jQuery.datepicker, dpDiv: jQuery.datepicker.dpDiv[0].cloneNode(true)};
  };
  // Icons that a style sheet shows with `content: url()` are fetched when they are first shown, and their element has no width
  // until then. Fetched now, they belong to what the load event waits for; what is left then is to wait for the browser to notice.
  const icons = [], withIcon = new Set(), withIconUnderMouse = new Set();
  document.addEventListener("DOMContentLoaded", () => {
    window.addEventListener("load", remember, {once: true});  // after the page's own, which stand in its source
    for (const sheet of document.styleSheets)
      for (const rule of sheet.cssRules) {
        const found = /^url\("(.*)"\)/.exec(rule.style && rule.style.content);
        if (!found) continue;
        icons.push(Object.assign(new Image(), {src: new URL(found[1], sheet.href || document.baseURI).href}));
        if (/:before|:after/.test(rule.selectorText)) continue;
        const selector = rule.selectorText.replace(/:hover/g, "");
        withIcon.add(selector);
        if (selector !== rule.selectorText) withIconUnderMouse.add(selector);
      }
  }, {once: true});
  const iconIsDue = () => [...document.querySelectorAll([...withIcon].join())].some(e => {
    const [box] = e.getClientRects();
    return box && !box.width && getComputedStyle(e).content.startsWith("url");
  });
  const changesUnderMouse = e => withIconUnderMouse.size > 0 && e.matches([...withIconUnderMouse].join());
  // Both come within milliseconds, so a quiet machine never waits as long as that, and a busy one shows the page as a quiet one does.
  const LONGEST_WAIT = 3000;
  const drawIcons = async () => {
    if (!withIcon.size) return;
    for (const end = real.perfNow() + LONGEST_WAIT; real.perfNow() < end && iconIsDue();)
      await new Promise(done => real.setTimeout(done, 5));
  };

  const channel = new MessageChannel();
  let wake = () => {};
  channel.port1.onmessage = () => wake();
  const turn = () => new Promise(done => { wake = done; channel.port2.postMessage(0); });  // lets all promises settle

  // Let `ms` of the page's time pass: run what is due, in order. At most 3,000 callbacks, so that it always ends.
  const passTime = async ms => {
    const end = now + ms;
    for (let left = 3000; left > 0; left--) {
      let next = null;
      for (const timer of timers.values())
        if (timer.due <= end && (!next || timer.due < next.due || (timer.due === next.due && timer.id < next.id)))
          next = timer;
      if (!next) break;
      now = Math.max(now, next.due);
      if (next.every === null) timers.delete(next.id); else next.due = now + next.every;
      try { next.call(); } catch (error) { real.setTimeout(() => { throw error; }); }
      await turn();
    }
    now = end;
  };
  const atMost = (ms, promise) => Promise.race([promise, new Promise(done => real.setTimeout(done, ms))]);
  // Whether they came. Even a busy machine draws many times in two seconds.
  const drawFrames = async frames => {
    for (; frames > 0; frames--) if (!await atMost(2000, new Promise(real.requestAnimationFrame))) return false;
    return true;
  };
  // What comes to lie under a mouse that rests is hovered, but only when the next frame has been drawn.
  let mouse = null;  // where the episode has moved it
  window.addEventListener("pointermove", event => {
    if (event.isTrusted) mouse = {x: event.clientX, y: event.clientY};
  }, {capture: true, passive: true});
  const hoverIsDue = () => {
    const under = mouse && document.elementFromPoint(mouse.x, mouse.y);
    return under && (!under.matches(":hover") || under.querySelector(":hover"));
  };
  // What is not drawn any more, or disabled, loses the focus, but only then, too.
  const blurIsDue = () => {
    const element = document.activeElement;
    return element && element !== document.body && (!element.getClientRects().length || element.disabled);
  };
  // A list box scrolls to what has been chosen in it with the next frame.
  const listMayScroll = () => document.querySelector("select[multiple], select[size]");
  // Keys move what can be scrolled only with the frames that are drawn, as the wheel does: the focused element, what was clicked
  // last, or what one of them is in.
  const scrolls = e => e && (e.scrollHeight > e.clientHeight || e.scrollWidth > e.clientWidth || scrolls(e.parentElement));
  const keyMayScroll = () => {
    const anchor = getSelection().anchorNode;
    return scrolls(document.activeElement) || scrolls(document.documentElement) || scrolls(anchor && anchor.parentElement);
  };
  const pictures = () => [...document.images].filter(image => !image.complete).map(image => new Promise(done => {
    for (const type of ["load", "error"]) image.addEventListener(type, done, {once: true});
  }));
  // `passTime`, and what else happens meanwhile in a page that is drawn all the time: whether it is drawn. `frames`: that the action
  // needs, which moves the page only with them.
  const advance = async (ms, action) => {
    const frames = action === "scroll" || action === "press" && keyMayScroll() ? 3 : 0;
    if (!await drawFrames(hoverIsDue() ? 2 : 0)) return false;
    await passTime(ms);
    const loading = pictures();
    if (loading.length) await atMost(LONGEST_WAIT, Promise.all(loading));
    await drawIcons();
    return drawFrames(frames + (hoverIsDue() || blurIsDue() || listMayScroll() ? 2 : 0));
  };

  // In the size of a picture the mouse is over something else. A machine that is slow with the picture would tell the page of it.
  let hasSizeOfPicture = false;
  for (const kind of ["mouse", "pointer"])
    for (const change of ["over", "out", "enter", "leave"])
      window.addEventListener(kind + change, event => {
        if (hasSizeOfPicture && event.isTrusted) event.stopImmediatePropagation();
      }, {capture: true});
  const hovered = () => [...document.querySelectorAll(":hover")].pop();
  let hoveredBefore;
  // Until no frame is on its way that would draw what the mouse hovers.
  const readyForPicture = async () => {
    if (mouse) {
      await drawFrames(2);
      await new Promise(done => real.setTimeout(done, 100));
    }
    hoveredBefore = hovered();
    hasSizeOfPicture = true;
  };
  const hoversAsBefore = () => hovered() === hoveredBefore;
  // Until the page is as wide as for acting, and not as the ``width`` of a picture.
  const readyForAction = async width => {
    for (let tries = 50; tries > 0 && innerWidth === width; tries--) await new Promise(done => real.setTimeout(done, 10));
    if (hasSizeOfPicture && hoverIsDue()) await drawFrames(2);
    hasSizeOfPicture = false;
  };

  const mark = (/*MARK*/);
  const markWithVisibility = (/*MARK_WITH_VISIBILITY*/);
  const unmark = (/*UNMARK*/);
  const focused = root => {
    const element = root.activeElement;
    return element && element.shadowRoot ? focused(element.shadowRoot) : element;
  };
  const focusedBid = () => { const e = focused(document); return e && e.getAttribute("bid") || ""; };
  // Whether a click is bound to be refused, so that nobody needs to wait half a second for it: the element is not drawn, or another
  // one lies over its middle, however it is scrolled into view (the ways are Playwright's). The page's clock stands still, so it
  // will stay like that. Then the page is left as Playwright's last try leaves it, else as it was.
  const blocked = e => {
    const above = [];
    for (let a = e.parentElement; a; a = a.parentElement) above.push([a, a.scrollLeft, a.scrollTop]);
    for (const side of ["", "end", "center", "start"]) {
      if (side) e.scrollIntoView({block: side, inline: side, behavior: "instant"}); else e.scrollIntoViewIfNeeded();
      const box = [...e.getClientRects()].find(each => each.width * each.height > 0.99);
      if (!box) return true;
      const middle = (from, to, most) => (Math.max(from, 0) + Math.min(to, most)) / 2;
      const top = document.elementFromPoint(middle(box.left, box.right, innerWidth), middle(box.top, box.bottom, innerHeight));
      if (top && (e.contains(top) || top.closest("label"))) {
        for (const [a, left, down] of above) a.scrollTo({left, top: down, behavior: "instant"});
        return false;
      }
    }
    return true;
  };
  // The middle of an element, scrolled into view as Playwright does first; null where that is not enough to reach it.
  const middleInView = e => {
    e.scrollIntoViewIfNeeded();
    const box = e.getBoundingClientRect();
    const x = (box.left + box.right) / 2, y = (box.top + box.bottom) / 2;
    const inView = box.left >= 0 && box.top >= 0 && box.right <= innerWidth && box.bottom <= innerHeight;
    return inView && e.contains(document.elementFromPoint(x, y)) ? [x, y] : null;
  };
  // The element that has this bid; null where it is none, or one of several.
  const only = bid => {
    const found = document.querySelectorAll(`[bid="${bid}"]`);
    return found.length === 1 ? found[0] : null;
  };
  // Where Playwright's last way to scroll puts the page.
  const leaveScrolled = e => e.scrollIntoView({block: "start", inline: "start", behavior: "instant"});
  // The click that was announced last: its target, how often the mouse's button has gone up, and whether it went down on the target.
  // Playwright asks the same, and keeps from the page a click that would hit what lies above. But it stops asking when its time is
  // up, and on a busy machine the mouse may come after that; so the page asks, too. Of a click that is only tried out it sees nothing.
  let click = null;
  const reachesTarget = event => event.composedPath().includes(click.target);
  const judge = event => {
    if (!click || !event.isTrusted) return;
    if (event.type === "pointerdown") click.hit = click.hit || reachesTarget(event);
    if (event.type === "pointerup") click.releases += 1;
  };
  let dragFails = false;  // the button goes up because a drag has failed: that is no click
  const keepClickAway = away => { dragFails = away; };
  const keepAway = event => {
    const unwanted = click && (!click.hit || click.onlyTried) || dragFails && event.type === "click";
    if (unwanted && event.isTrusted) { event.preventDefault(); event.stopImmediatePropagation(); }
  };
  // Playwright's listeners are the window's, too, and must see everything; so what they let through is kept from the document.
  for (const type of ["pointerdown", "mousedown", "pointerup", "mouseup", "click", "auxclick", "dblclick", "contextmenu"]) {
    window.addEventListener(type, judge, {capture: true});
    document.addEventListener(type, keepAway, {capture: true});
  }
  // What Playwright aims at: the button or link that the element is in, if it is no field.
  const target = e => e.matches("input, textarea, select") || e.isContentEditable
    ? e : e.closest("button, [role=button], a, [role=link]") || e;
  const expectClick = (e, onlyTried) => { click = {target: target(e), onlyTried, hit: false, releases: 0}; };
  // null in a document that waits for none, for it has just been loaded.
  const clickSoFar = () => click && {hit: click.hit, releases: click.releases};
  const forgetClick = () => { click = null; };
  // What Control+z would take back and Control+y bring again is the last episode's. Taking it all back empties one list, typing
  // into a field that goes away the other. The page's own listeners have no part in it, and the focus comes back: it is lost later,
  // when the fields are as they were.
  let unheard = false;
  for (const type of ["beforeinput", "input", "change", "focus", "blur", "focusin", "focusout"])
    window.addEventListener(type, event => { if (unheard) event.stopImmediatePropagation(); }, {capture: true});
  const can = command => document.queryCommandEnabled(command);
  const forgetEdits = () => {
    if (!can("undo") && !can("redo")) return;
    unheard = true;
    const element = document.activeElement;
    while (can("undo")) document.execCommand("undo");
    const field = document.body.appendChild(document.createElement("input"));
    field.focus();
    document.execCommand("insertText", false, "x");
    document.execCommand("undo");
    field.remove();
    if (element) element.focus({preventScroll: true});
    unheard = false;
  };
  // Tab goes on from what had the focus last, or from its place. Where nothing at all comes after that place, Chromium counts it as
  // none: so Tab starts from the top again, and Shift+Tab from the end.
  const forgetPlace = () => {
    const end = document.documentElement.appendChild(document.createElement("button"));
    end.focus(); end.blur(); end.remove();
  };
  // As after loading: no timer, no bid, nothing focused, and Tab starts from the top. Either every element is kept, and its field is
  // as the page wrote it; or the body gets copies of its elements, which have no listeners and no widgets yet.
  const restart = elements => () => {
    timers.clear();
    forgetClick();
    mouse = null;
    hasSizeOfPicture = false;
    forgetEdits();
    delete window.browsergym_elem_counter;
    for (const e of document.querySelectorAll("*")) {
      for (const {name} of [...e.attributes]) if (name === "bid" || name.startsWith("browsergym_")) e.removeAttribute(name);
      if (e.scrollTop || e.scrollLeft) e.scrollTo({left: 0, top: 0, behavior: "instant"});
    }
    elements();
    forgetPlace();
  };
  const keep = () => {
    for (const [e, attributes] of born)
      for (const [name, value] of attributes) if (value === null) e.removeAttribute(name); else e.setAttribute(name, value);
    const form = document.body.appendChild(document.createElement("form"));
    form.id = "course-form";
    const fields = [...document.querySelectorAll("input, textarea, select")];
    const own = fields.filter(e => !e.form);
    for (const e of own) e.setAttribute("form", form.id);
    for (const each of new Set(fields.map(e => e.form))) each.reset();  // only a form can take back that a field was touched
    for (const e of own) e.removeAttribute("form");
    form.remove();
  };
  const copy = () => {
    document.body.replaceChildren(...body.map(e => e.cloneNode(true)));
    if (window.jQuery && jQuery.fn.uniqueId && !jQuery.resetUniqueId) {  // jQuery UI's own, with its count from the start
      let last = 0;
      jQuery.fn.uniqueId = function () { return this.each(function () { if (!this.id) this.id = "ui-id-" + ++last; }); };
    }
    if (!calendar) return;
    const now = jQuery.datepicker, div = now.dpDiv[0];
    Object.assign(now, calendar, {dpDiv: now.dpDiv, initialized: now.initialized});
    for (const {name} of [...div.attributes]) div.removeAttribute(name);
    for (const {name, value} of calendar.dpDiv.attributes) div.setAttribute(name, value);
    div.replaceChildren();
  };
  Object.defineProperty(window, "__course", {value: Object.freeze({
    advance, changesUnderMouse, drawIcons, readyForPicture, hoversAsBefore, readyForAction, blocked, middleInView, only, expectClick, clickSoFar, forgetClick, keepClickAway, leaveScrolled,
    mouseHasMoved: () => mouse !== null, keep: restart(keep), copy: restart(copy),
    // Each marks every element and returns the focused one's bid ("" for none). A page that watches its elements hears of the marks,
    // and may move the focus, before it is asked for: text-editor does.
    mark: async () => { mark(["", "bid", "standard_html"]); await turn(); return focusedBid(); },
    markWithVisibility: async () => { await markWithVisibility(["", "bid", "standard_html"]); return focusedBid(); },
    unmark,
  })});
})();
