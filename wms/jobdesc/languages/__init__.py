"""Other languages of job descriptions: readers and writers, each with a loss report.

To add a language:

1. A module here with `looks_like(data) -> bool`, which judges the content alone and is linear in its size, and `read(data) -> Translation`,
   which bounds the document before it parses (`document.text_of` for text, `hardened_xml.parsed` for XML).
2. `read` makes a `JobDraft` for each job. It gives the draft every element of the source; nothing is passed over in silence. `put`, `append`,
   `put_item` and `require` are for what a description can say, `impossible` is for what it cannot, `problem` for what makes the job another one.
   The draft checks all values by the rules of descriptions. `drafted` makes the translation of the drafts.
3. A writer is `write(descriptions) -> WrittenDocument`, likewise with a note for each field that it is given.
4. A line in `catalogue.LANGUAGES`, before TOML, which is what remains.
5. Tests: the constructs of the language, each in the loss report, with its line; and an entry in the fuzz tests of all readers.
"""
