from wms.jobdesc.loss_report import LossEntry, LossNotes, LossReport, Origin, together


def notes() -> LossNotes:
    made = LossNotes()
    made.impossible(Origin("c", 9), "no such limit")
    made.kept(Origin("a", 1))
    made.translated(Origin("b", 2), "bytes become MiB")
    return made


def test_entries_stand_by_their_lines() -> None:
    assert [each.element for each in notes().report().entries] == ["a", "b", "c"]


def test_losses_are_what_is_impossible() -> None:
    report = notes().report()
    assert report.losses == (LossEntry("c", "impossible", "no such limit", line=9),)
    assert [each.element for each in report.changes] == ["b", "c"]
    assert report.in_short() == "1 kept, 1 translated, 1 impossible"


def test_a_loss_is_a_problem_at_its_line() -> None:
    [loss] = notes().report().losses
    assert str(loss.as_problem()).startswith("c (line 9): no such limit; take it out")


def test_a_note_can_be_revised() -> None:
    made = LossNotes()
    made.revise(made.kept(Origin("x", 3)), "impossible", "is 0")
    assert made.report().entries == (LossEntry("x", "impossible", "is 0", line=3),)


def test_texts_are_bounded_and_printable() -> None:
    made = LossNotes()
    made.impossible(Origin("x\n" * 500), "\x1b" * 9_000)
    [entry] = made.report().entries
    assert len(entry.element) <= 120
    assert len(entry.sentence) <= 400
    assert (entry.element + entry.sentence).isprintable()


def test_reports_are_joined() -> None:
    assert len(together([notes().report(), LossReport(), notes().report()]).entries) == 6


def test_what_is_omitted_is_named_and_is_no_loss() -> None:
    made = LossNotes()
    made.omitted(Origin("log", 2), "is nothing of the job")
    made.impossible(Origin("c", 9), "no such limit")
    report = made.report()
    assert [each.element for each in report.left_out] == ["log", "c"]
    assert [each.element for each in report.losses] == ["c"]
    assert report.in_short() == "1 omitted, 1 impossible"
