// For a screenshot the page is resized, and the mouse is over something else. A machine that is
// slow with it would tell the page of that.
({sleep}, {drawFrames, hoverIsDue, mouseHasMoved}) => {
  let hasSizeOfPicture = false;
  const keepFromPage = event => {
    if (hasSizeOfPicture && event.isTrusted) event.stopImmediatePropagation();
  };
  for (const kind of ["mouse", "pointer"]) {
    for (const change of ["over", "out", "enter", "leave"]) {
      window.addEventListener(kind + change, keepFromPage, {capture: true});
    }
  }
  const forgetPicture = () => { hasSizeOfPicture = false; };

  const hovered = () => [...document.querySelectorAll(":hover")].pop();
  let hoveredBefore;
  // Until no frame is on its way that would draw what the mouse hovers.
  const readyForPicture = async () => {
    if (mouseHasMoved()) {
      await drawFrames(2);
      await sleep(100);
    }
    hoveredBefore = hovered();
    hasSizeOfPicture = true;
  };
  const hoversAsBefore = () => hovered() === hoveredBefore;
  // Until the page is as wide as for acting, and not as the ``width`` of a picture.
  const readyForAction = async width => {
    for (let tries = 50; tries > 0 && innerWidth === width; tries--) await sleep(10);
    if (hasSizeOfPicture && hoverIsDue()) await drawFrames(2);
    forgetPicture();
  };

  return {readyForPicture, hoversAsBefore, readyForAction, forgetPicture};
}
