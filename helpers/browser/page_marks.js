// BrowserGym's marks: its ids (bids), which its own scripts write to every element.
({real, turn}) => {
  const markAlone = (/*MARK*/);
  const markAndSee = (/*MARK_WITH_VISIBILITY*/);
  const takeMarksOff = (/*UNMARK*/);
  const ATTRIBUTES = ["", "bid", "standard_html"];
  const focused = root => {
    const element = root.activeElement;
    return element && element.shadowRoot ? focused(element.shadowRoot) : element;
  };
  // The bid of the focused element, "" for none.
  const focusedBid = () => {
    const element = focused(document);
    return (element && element.getAttribute("bid")) || "";
  };
  let marked = false;
  const unmark = () => {
    takeMarksOff();
    marked = false;
  };
  // Marks every element and returns the focused one's bid; marks that nobody has looked at are made
  // anew.
  const markBy = async marking => {
    if (marked) unmark();
    marked = true;
    await marking(ATTRIBUTES);
    return focusedBid();
  };
  // A page that watches its elements hears of the marks, and may move the focus, before it is asked
  // for: text-editor does.
  const mark = () => markBy(attributes => {
    markAlone(attributes);
    return turn();
  });
  const markWithVisibility = () => markBy(markAndSee);

  return {mark, markWithVisibility, unmark};
}
