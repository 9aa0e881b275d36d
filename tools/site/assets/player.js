/* The player of recorded episodes: two policies side by side on one page, turn by turn.
   window.recording is written by tools/site/player.py; the words are in the page, in its language. */
(() => {
  const area = document.getElementById("player-area");
  const words = JSON.parse(area.dataset.words);
  const { episodes } = window.recording;
  const choice = document.getElementById("player-episode");
  const back = document.getElementById("player-back");
  const on = document.getElementById("player-on");
  const place = document.getElementById("player-place");
  const SIDES = ["untrained", "trained"];
  let now = 0; // the turn that is shown, from 0; after the last one comes the end

  /* An element with a class and what is in it: texts or other elements. */
  function make(tag, name, ...inside) {
    const element = document.createElement(tag);
    if (name) element.className = name;
    element.append(...inside);
    return element;
  }

  /* A phrase with its {blanks} filled. */
  function say(phrase, blanks) {
    return words[phrase].replace(/\{(\w+)\}/g, (_, blank) => blanks[blank]);
  }

  function percent(probability) {
    const value = 100 * probability;
    return `${value >= 99.95 ? "100" : value.toFixed(value < 10 ? 2 : 1)} %`;
  }

  function chosen() {
    return episodes[choice.selectedIndex];
  }

  /* The turns of the longer of the two, and the end. */
  function steps(episode) {
    return 1 + Math.max(...SIDES.map((side) => episode[side].turns.length));
  }

  function verdict(played) {
    return played.reward === 1 ? words.solved : words.failed;
  }

  function picture(source, box, when) {
    const image = make("img");
    image.src = `${area.dataset.pictures}/${source}`;
    image.alt = say("picture", { when }) + (box ? `; ${words.box}` : "");
    const frame = make("div", "player-picture", image);
    if (box) {
      const mark = make("div", "player-box");
      const [left, top, width, height] = box.map((value) => `${value}%`);
      Object.assign(mark.style, { left, top, width, height });
      frame.append(mark);
    }
    return frame;
  }

  /* A token, and below it its probability; the less likely, the paler. */
  function token([text, id, logprob]) {
    const probability = Math.exp(logprob);
    const shown = make("span", "player-text", text.replace(/\n/g, "⏎").replace(/ /g, "␣") || "…");
    const likely = make("span", "player-probability", percent(probability));
    const element = make("span", "player-token", shown, likely);
    element.style.setProperty("--probability", probability.toFixed(3));
    element.dataset.logprob = logprob;
    element.title = `token ${id}, logprob ${logprob}`;
    return element;
  }

  function answer(turn) {
    const row = make("p", "player-answer", ...turn.answer.map(token));
    const sum = turn.answer.reduce((total, [, , logprob]) => total + logprob, 0);
    const whole = make("p", "player-whole", `${words.whole}: ${percent(Math.exp(sum))}`);
    return [row, whole];
  }

  /* One turn of one policy. */
  function showTurn(turn, number) {
    const read = make("details", "", make("summary", "", number ? words.new : words.read));
    read.append(make("pre", "player-prompt", turn.read));
    read.open = true;
    const action = turn.action || say("none", { kind: turn.kind });
    const parts = [
      picture(turn.picture, turn.box, say("turn", { n: number + 1 })),
      read,
      make("h3", "", words.answers),
      ...answer(turn),
      make("p", "", `${words.action}: `, make("code", "", action)),
    ];
    if (turn.error) parts.push(make("p", "player-error", `${words.error}: ${turn.error}`));
    return parts;
  }

  function showEnd(played) {
    const { ended, reward } = played;
    const said = say("over", { ended, reward: reward === null ? "–" : reward });
    const line = make("p", played.reward === 1 ? "player-solved" : "player-failed", said);
    return [picture(played.last_picture, null, words.after), line];
  }

  function show() {
    const episode = chosen();
    const last = steps(episode) - 1;
    now = Math.max(0, Math.min(now, last));
    document.getElementById("player-goal").textContent = episode.goal;
    const columns = SIDES.map((side) => {
      const played = episode[side];
      const inside = now < played.turns.length ? showTurn(played.turns[now], now) : showEnd(played);
      const column = make("section", "player-side", make("h2", "", words[side]), ...inside);
      column.dataset.side = side;
      return column;
    });
    document.getElementById("player-sides").replaceChildren(...columns);
    const when = now < last ? say("turn", { n: now + 1 }) : words.after;
    place.textContent = `${when} (${say("of", { n: now + 1, all: last + 1 })})`;
    const focused = document.activeElement;
    back.disabled = now === 0;
    on.disabled = now === last;
    if (focused.disabled) area.focus(); // a button that is switched off would lose the keyboard
  }

  function go(step) {
    now = step;
    show();
  }

  function choose(number) {
    choice.selectedIndex = Math.max(0, Math.min(episodes.length - 1, number));
    go(0);
  }

  const keys = {
    ArrowRight: () => go(now + 1),
    ArrowLeft: () => go(now - 1),
    Home: () => go(0),
    End: () => go(steps(chosen()) - 1),
    PageDown: () => choose(choice.selectedIndex + 1),
    PageUp: () => choose(choice.selectedIndex - 1),
  };
  area.addEventListener("keydown", (event) => {
    const inList = event.target === choice;
    if (event.ctrlKey || event.metaKey || event.altKey || inList || !keys[event.key]) return;
    event.preventDefault();
    event.stopPropagation(); // the theme has keys of its own
    keys[event.key]();
  });
  back.addEventListener("click", () => go(now - 1));
  on.addEventListener("click", () => go(now + 1));
  choice.addEventListener("change", () => go(0));
  for (const episode of episodes) {
    const outcome = SIDES.map((side) => verdict(episode[side])).join(" → ");
    choice.append(new Option(`${episode.task}, ${words.seed} ${episode.seed}: ${outcome}`));
  }
  show();
})();
