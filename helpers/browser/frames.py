"""Whether a browser still draws."""

from playwright.sync_api import CDPSession
from playwright.sync_api import Error as PlaywrightError

# In a world of its own, in which the page's clock is the real one (in the page's, page_clock.js
# holds it).
ONE_FRAME = """new Promise(done => {
    requestAnimationFrame(() => done(true));
    setTimeout(() => done(false), 2000);
})"""


def draws_frames(cdp: CDPSession) -> bool:
    """Whether the page is drawn within 2 seconds: even a busy machine draws many times in them.
    True where the page cannot be asked, for then it is not the drawing that is broken."""
    try:
        frame = cdp.send("Page.getFrameTree")["frameTree"]["frame"]["id"]
        world = cdp.send("Page.createIsolatedWorld", {"frameId": frame})
        wanted = {
            "expression": ONE_FRAME,
            "contextId": world["executionContextId"],
            "awaitPromise": True,
        }
        return cdp.send("Runtime.evaluate", wanted)["result"].get("value") is not False
    except PlaywrightError:
        return True
