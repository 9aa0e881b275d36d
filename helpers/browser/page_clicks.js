// Where a click will land, and whether the last one landed there.
() => {
  const scrollToSide = (element, side) =>
    element.scrollIntoView({block: side, inline: side, behavior: "instant"});
  // Where Playwright's last way to scroll puts the page.
  const leaveScrolled = element => scrollToSide(element, "start");

  // The middle of the part of a span that lies between 0 and `most`.
  const middle = (from, to, most) => (Math.max(from, 0) + Math.min(to, most)) / 2;
  // Whether the element can be clicked as the page is scrolled now; null where it is not drawn.
  const reachable = element => {
    const box = [...element.getClientRects()].find(each => each.width * each.height > 0.99);
    if (!box) return null;
    const x = middle(box.left, box.right, innerWidth);
    const y = middle(box.top, box.bottom, innerHeight);
    const top = document.elementFromPoint(x, y);
    return Boolean(top && (element.contains(top) || top.closest("label")));
  };
  // Whether a click is bound to be refused, so that nobody needs to wait half a second for it: the
  // element is not drawn, or another one lies over its middle, however it is scrolled into view
  // (the ways are Playwright's). The page's clock stands still, so it will stay like that. Then the
  // page is left as Playwright's last try leaves it, else as it was.
  const blocked = element => {
    const above = [];
    for (let e = element.parentElement; e; e = e.parentElement) {
      above.push([e, e.scrollLeft, e.scrollTop]);
    }
    for (const side of ["", "end", "center", "start"]) {
      if (side) scrollToSide(element, side);
      else element.scrollIntoViewIfNeeded();
      const found = reachable(element);
      if (found === null) return true;
      if (found) {
        for (const [e, left, top] of above) e.scrollTo({left, top, behavior: "instant"});
        return false;
      }
    }
    return true;
  };
  // The middle of an element, scrolled into view as Playwright does first; null where that is not
  // enough to reach it.
  const middleInView = element => {
    element.scrollIntoViewIfNeeded();
    const {left, right, top, bottom} = element.getBoundingClientRect();
    const x = (left + right) / 2;
    const y = (top + bottom) / 2;
    const inView = left >= 0 && top >= 0 && right <= innerWidth && bottom <= innerHeight;
    return inView && element.contains(document.elementFromPoint(x, y)) ? [x, y] : null;
  };
  // The element that has this bid; null where it is none, or one of several.
  const only = bid => {
    const found = document.querySelectorAll(`[bid="${bid}"]`);
    return found.length === 1 ? found[0] : null;
  };

  // The click that was announced last: its target, how often the mouse's button has gone up, and
  // whether it went down on the target. Playwright asks the same, and keeps from the page a click
  // that would hit what lies above. But it stops asking when its time is up, and on a busy machine
  // the mouse may come after that; so the page asks, too. Of a click that is only tried out it sees
  // nothing.
  let click = null;
  // What Playwright aims at: the button or link that the element is in, if it is no field.
  const target = element => {
    if (element.matches("input, textarea, select") || element.isContentEditable) return element;
    return element.closest("button, [role=button], a, [role=link]") || element;
  };
  const expectClick = (element, onlyTried) => {
    click = {target: target(element), onlyTried, hit: false, releases: 0};
  };
  // null in a document that waits for none, for it has just been loaded.
  const clickSoFar = () => click && {hit: click.hit, releases: click.releases};
  const forgetClick = () => { click = null; };

  const judge = event => {
    if (!click || !event.isTrusted) return;
    if (event.type === "pointerdown" && event.composedPath().includes(click.target)) {
      click.hit = true;
    }
    if (event.type === "pointerup") click.releases += 1;
  };
  let dragFails = false; // the button goes up because a drag has failed: that is no click
  const keepClickAway = away => { dragFails = away; };
  const keepAway = event => {
    const unwanted = click && (!click.hit || click.onlyTried);
    if (!event.isTrusted || !(unwanted || (dragFails && event.type === "click"))) return;
    event.preventDefault();
    event.stopImmediatePropagation();
  };
  // Playwright's listeners are the window's, too, and must see everything; so what they let through
  // is kept from the document.
  const pressing = ["pointerdown", "mousedown", "pointerup", "mouseup"];
  for (const type of [...pressing, "click", "auxclick", "dblclick", "contextmenu"]) {
    window.addEventListener(type, judge, {capture: true});
    document.addEventListener(type, keepAway, {capture: true});
  }

  return {
    blocked,
    middleInView,
    only,
    leaveScrolled,
    expectClick,
    clickSoFar,
    forgetClick,
    keepClickAway,
  };
}
