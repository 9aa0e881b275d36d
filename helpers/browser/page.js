// Runs before every script of every page (a Playwright init script). Each of the other files is a
// function, which stands here in place of its name (`page_script` in private.py puts it in); what
// it returns others use. Their listeners are called in this order.
(() => {
  const clock = (/*page_clock.js*/)();
  const images = (/*page_images.js*/)(clock);
  const frames = (/*page_frames.js*/)(clock, images);
  const screenshot = (/*page_screenshot.js*/)(clock, frames);
  const clicks = (/*page_clicks.js*/)();
  const marks = (/*page_marks.js*/)(clock);
  const forgetEpisode = () => {
    clock.forgetTimers();
    clicks.forgetClick();
    frames.forgetMouse();
    screenshot.forgetPicture();
  };
  const {keep, copy, remake} = (/*page_restart.js*/)(forgetEpisode);

  // What Python calls. The page can neither change nor replace it.
  const {advance, drawBlur, mouseHasMoved} = frames;
  const {drawIcons, changesUnderMouse} = images;
  const {readyForPicture, hoversAsBefore, readyForAction} = screenshot;
  const course = {
    advance,
    drawBlur,
    mouseHasMoved,
    drawIcons,
    changesUnderMouse,
    readyForPicture,
    hoversAsBefore,
    readyForAction,
    keep,
    copy,
    remake,
    ...clicks,
    ...marks,
  };
  Object.defineProperty(window, "__course", {value: Object.freeze(course)});
})();
