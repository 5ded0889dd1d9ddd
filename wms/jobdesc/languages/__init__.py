"""Other languages of job descriptions: readers and writers, each with a loss report.

To add a language:

1. A module here with `looks_like(data) -> bool`, which judges by the content alone, in time linear in its size. And `read(data) -> Translation`,
   which checks the document's size before it parses (`document.text_of` for text, `hardened_xml.parsed` for XML).
2. `read` makes a `JobDraft` for each job. It gives the draft every element of the source, each by the rule of `loss_report`; none is ignored.
   `put`, `append`, `put_item` and `require` are for what a description expresses, `omitted` for what cannot change the job, and `impossible`
   for all else. `problem` is for elements without which there is no job at all, even with `--lenient`. The draft checks all values by the rules
   of descriptions. `drafted` makes a translation from the drafts.
3. A writer is `write(descriptions) -> WrittenDocument`, likewise with a note for each field that it is given.
4. A line in `catalogue.LANGUAGES`, before TOML, which is tried last.
5. Tests: the constructs of the language, each in the loss report, with its line; and an entry in the fuzz tests of all readers.
"""
