// How a page that has served an episode is made as it was when it had loaded, for the next one.
// `forgetEpisode` does so for the other files.
forgetEpisode => {
  // ---- as it was ----
  const born = new Map(); // element -> the attributes that marking overwrites, as they were
  let source = null; // what the page's file says, before the page's own listeners have run
  let loaded = null; // what they have made of it
  const noteAttributes = () => {
    for (const element of document.querySelectorAll("*")) {
      born.set(element, ["value", "checked"].map(name => [name, element.getAttribute(name)]));
    }
  };
  window.addEventListener("load", noteAttributes, {capture: true, once: true});
  const CORES = ["reward-display", "click-canvas", "sync-task-cover"]; // BrowserGym takes them away
  // Copies of what the body holds, and of jQuery UI's date picker.
  const copies = () => {
    const own = [...document.body.childNodes].filter(node => !CORES.includes(node.id));
    const picker = window.jQuery && jQuery.datepicker;
    return {
      body: own.map(node => node.cloneNode(true)),
      calendar: picker && {...picker, dpDiv: picker.dpDiv[0].cloneNode(true)},
    };
  };
  const noteSource = () => {
    source = copies();
    // After the page's own listeners, which stand in its source.
    window.addEventListener("load", () => { loaded = copies(); }, {once: true});
  };
  document.addEventListener("DOMContentLoaded", noteSource, {once: true});

  // ---- what a user's edits and focus leave behind ----
  // The page's own listeners have no part in forgetting the edits.
  let unheard = false;
  const notHeard = event => { if (unheard) event.stopImmediatePropagation(); };
  const editing = ["beforeinput", "input", "change"];
  for (const type of [...editing, "focus", "blur", "focusin", "focusout"]) {
    window.addEventListener(type, notHeard, {capture: true});
  }
  // What Control+z would take back and Control+y bring again is the last episode's. Taking it all
  // back empties one list, typing into a field that goes away the other. The focus comes back: it
  // is lost later, when the fields are as they were.
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
  // Tab goes on from what had the focus last, or from its place. Where nothing at all comes after
  // that place, Chromium counts it as none: so Tab starts from the top again, and Shift+Tab from
  // the end.
  const forgetPlace = () => {
    const end = document.documentElement.appendChild(document.createElement("button"));
    end.focus();
    end.blur();
    end.remove();
  };

  // ---- elements: kept, replaced by copies, or made anew ----
  const isMark = name => name === "bid" || name.startsWith("browsergym_");
  const clean = element => {
    for (const {name} of [...element.attributes]) {
      if (isMark(name)) element.removeAttribute(name);
    }
    if (element.scrollTop || element.scrollLeft) {
      element.scrollTo({left: 0, top: 0, behavior: "instant"});
    }
  };
  const setOrRemove = (element, name, value) => {
    if (value === null) element.removeAttribute(name);
    else element.setAttribute(name, value);
  };
  // Every element stays, and its field is as the page wrote it: only a form can take back that a
  // field was touched, so fields without one are lent one.
  const keepElements = () => {
    for (const [element, attributes] of born) {
      for (const [name, value] of attributes) setOrRemove(element, name, value);
    }
    const form = document.body.appendChild(document.createElement("form"));
    form.id = "course-form";
    const fields = [...document.querySelectorAll("input, textarea, select")];
    const without = fields.filter(field => !field.form);
    for (const field of without) field.setAttribute("form", form.id);
    for (const each of new Set(fields.map(field => field.form))) each.reset();
    for (const field of without) field.removeAttribute("form");
    form.remove();
  };
  // jQuery UI's own, with its count from the start.
  const countFromStart = () => {
    if (!window.jQuery || !jQuery.fn.uniqueId || jQuery.resetUniqueId) return;
    let last = 0;
    jQuery.fn.uniqueId = function () {
      return this.each(function () {
        if (!this.id) {
          last += 1;
          this.id = `ui-id-${last}`;
        }
      });
    };
  };
  const restoreCalendar = calendar => {
    const picker = jQuery.datepicker;
    const {dpDiv, initialized} = picker;
    for (const name of Object.keys(picker)) {
      if (!(name in calendar)) delete picker[name];
    }
    Object.assign(picker, calendar, {dpDiv, initialized});
    const div = dpDiv[0];
    for (const {name} of [...div.attributes]) div.removeAttribute(name);
    for (const {name, value} of calendar.dpDiv.attributes) div.setAttribute(name, value);
    div.replaceChildren();
  };
  // The body gets copies of its elements, which have no listeners and no widgets yet.
  const putCopies = ({body, calendar}) => {
    document.body.replaceChildren(...body.map(node => node.cloneNode(true)));
    countFromStart();
    if (calendar) restoreCalendar(calendar);
  };
  const copyElements = () => putCopies(loaded);
  // The colour wheels of the page's fields are made when its source has been read. One that is open
  // is told to close, or the next one would be shown as if the field before still had it.
  const closeWheels = () => {
    for (const field of document.querySelectorAll(".jscolor")) field.jscolor.hide();
  };
  const remakeWheels = () => {
    if (window.jscolor) jscolor.installByClassName("jscolor");
  };
  // The widgets that the page makes when it has loaded, it makes again. It would wait for a click
  // on "START" then, as after loading; the set-up starts the episode without one.
  const remakeElements = () => {
    closeWheels();
    putCopies(source);
    remakeWheels();
    const {startEpisode} = core;
    core.startEpisode = () => {};
    window.onload();
    core.startEpisode = startEpisode;
  };

  // As after loading: no timer, no bid, nothing focused, and Tab starts from the top.
  const restart = renewElements => () => {
    forgetEpisode();
    forgetEdits();
    delete window.browsergym_elem_counter;
    for (const element of document.querySelectorAll("*")) clean(element);
    renewElements();
    forgetPlace();
  };

  return {
    keep: restart(keepElements),
    copy: restart(copyElements),
    remake: restart(remakeElements),
  };
}
