// What a page does only when a frame is drawn, and how an action's time passes in it.
({real, atMost, passTime}, {waitForImages, drawIcons}) => {
  // Whether they came. Even a busy machine draws many times in two seconds.
  const drawFrames = async frames => {
    for (let left = frames; left > 0; left--) {
      const drawn = await atMost(2000, new Promise(real.requestAnimationFrame));
      if (!drawn) return false;
    }
    return true;
  };

  // What comes to lie under a mouse that rests is hovered, but only when the next frame has been
  // drawn.
  let mouse = null; // where the episode has moved it
  const noteMouse = event => {
    if (event.isTrusted) mouse = {x: event.clientX, y: event.clientY};
  };
  window.addEventListener("pointermove", noteMouse, {capture: true, passive: true});
  const mouseHasMoved = () => mouse !== null;
  const forgetMouse = () => { mouse = null; };
  const hoverIsDue = () => {
    const under = mouse && document.elementFromPoint(mouse.x, mouse.y);
    return under && (!under.matches(":hover") || under.querySelector(":hover"));
  };
  // What is not drawn any more, or disabled, loses the focus, but only then, too.
  const blurIsDue = () => {
    const element = document.activeElement;
    if (!element || element === document.body) return false;
    return !element.getClientRects().length || element.disabled;
  };
  // A list box scrolls to what has been chosen in it with the next frame.
  const listMayScroll = () => document.querySelector("select[multiple], select[size]");
  // Keys move what can be scrolled only with the frames that are drawn, as the wheel does: the
  // focused element, what was clicked last, or what one of them is in.
  const scrolls = element => {
    if (!element) return false;
    const {scrollHeight, clientHeight, scrollWidth, clientWidth} = element;
    if (scrollHeight > clientHeight || scrollWidth > clientWidth) return true;
    return scrolls(element.parentElement);
  };
  const keyMayScroll = () => {
    const anchor = getSelection().anchorNode;
    const clicked = anchor && anchor.parentElement;
    return [document.activeElement, document.documentElement, clicked].some(scrolls);
  };

  // `passTime`, and what else happens meanwhile in a page that is drawn all the time: whether it is
  // drawn. `action`: "scroll" or "press" for one that may move the page, which takes frames.
  const advance = async (ms, action) => {
    const moves = action === "scroll" || (action === "press" && keyMayScroll());
    if (!await drawFrames(hoverIsDue() ? 2 : 0)) return false;
    await passTime(ms);
    await waitForImages();
    await drawIcons();
    const changes = hoverIsDue() || blurIsDue() || listMayScroll();
    return drawFrames((moves ? 3 : 0) + (changes ? 2 : 0));
  };

  // Take the focus from what has just lost the right to it.
  const drawBlur = () => drawFrames(blurIsDue() ? 2 : 0);

  return {advance, drawBlur, drawFrames, hoverIsDue, mouseHasMoved, forgetMouse};
}
