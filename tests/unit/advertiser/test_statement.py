"""What an ad says, what of it is news, and what the machine and files tell."""

import msgspec
import pytest
from msgspec.structs import replace

from services.advertiser.config import SiteStatement
from services.advertiser.provider import SeenElement
from services.advertiser.statement import AdContent, important_change, state
from wms.classad.ad import Ad
from wms.classad.expression import Expression
from wms.classad.match import matches
from wms.glue.glue1 import GlueComputingElement as Glue
from wms.matching.ad_limits import allowance
from wms.messages.ads import Advertise
from wms.site import ComputingElement

OFFER = ComputingElement(site="glasgow", ce="main", slots=100, max_cpu_time=3_600, vos=("lhcb",))


GLUE = Glue(
    id="glasgow/slurm-main",
    name="main",
    status="Production",
    free_job_slots=40,
    max_wall_seconds=7_200,
    access_rules=("VO:lhcb",),
)


def said(settings: SiteStatement | None = None, *, glue: Glue = GLUE, **offered: object) -> AdContent:
    return state(SeenElement(offer=replace(OFFER, **offered), glue=glue), settings or SiteStatement())


def test_an_ad_has_the_names_of_glue_and_minutes():
    attributes = said().attributes
    assert attributes["GlueCEStateStatus"] == "Production"
    assert (attributes["GlueCEPolicyMaxWallClockTime"], attributes["GlueCEPolicyMaxCPUTime"]) == (120, 60)
    assert (attributes["GlueCEInfoTotalCPUs"], attributes["GlueCEStateFreeJobSlots"]) == (100, 40)
    assert attributes["GlueCEAccessControlBaseRule"] == ["VO:lhcb"]
    assert attributes["GlueCESEBindGroupSEUniqueID"] == []


def test_what_the_site_says_is_in_its_ad():
    settings = SiteStatement(
        stations=["fnal-station"],
        applications=["ROOT-6.30"],
        close_storage={"se.example.org": "/mnt/se"},
        benchmarks={"HEPSPEC06": 11.5, "SI00": 2_500},
        attributes={"PurchasedBy": "council"},
        rank="other.JobPriority",
    )
    statement = said(settings)
    attributes = statement.attributes
    assert attributes["StationNames"] == ["fnal-station"]
    assert attributes["GlueHostApplicationSoftwareRunTimeEnvironment"] == ["ROOT-6.30"]
    assert attributes["CloseStorageElements"] == [{"name": "se.example.org", "mount": "/mnt/se"}]
    assert (attributes["GlueHostBenchmarkHEPSPEC06"], attributes["GlueHostBenchmarkSI00"]) == (11.5, 2_500)
    assert attributes["PurchasedBy"] == "council"
    assert statement.rank == "other.JobPriority"


def test_the_grids_entry_point_is_in_the_ad_as_configured_or_as_glue_tells():
    gatekeeper = replace(
        GLUE, host_name="ce01", gatekeeper_port=2119, job_manager="jobmanager", lrms_type="pbs"
    )
    told = [
        said(),
        said(glue=gatekeeper),
        said(glue=replace(gatekeeper, contact="ce01:2119/blah-pbs-long")),
        said(
            SiteStatement(
                entry_point="gram.example.org/jobmanager", monitoring_database="https://db.example.org/xml"
            ),
            glue=gatekeeper,
        ),
    ]
    assert [each.attributes.get("GlobusResourceContactString") for each in told] == [
        None,
        "ce01:2119/jobmanager-pbs",
        "ce01:2119/blah-pbs-long",
        "gram.example.org/jobmanager",
    ]
    assert told[-1].attributes["MonitoringDatabaseURL"] == "https://db.example.org/xml"
    job_ad = job(
        'regexp("gram", other.GlobusResourceContactString) && other.MonitoringDatabaseURL =!= undefined'
    )
    assert matches(job_ad, resource(told[-1]))
    assert not matches(job_ad, resource(told[1]))


def test_limits_on_jobs_are_numbers_and_attributes_of_the_ad():
    settings = SiteStatement(requirements='other.Owner != "mallory" || other.Urgent')
    statement = said(settings, max_jobs=64, max_submitting_jobs=10, current_jobs=3)
    assert statement.requirements == settings.requirements
    assert statement.element.rule == ""
    assert (statement.element.max_jobs, statement.element.max_submitting_jobs) == (64, 10)
    assert statement.attributes["MaxJobs"] == 64
    assert statement.attributes["CurrentJobs"] == 3
    assert said().requirements == ""
    assert "MaxJobs" not in said().attributes


def resource(statement: AdContent) -> Ad:
    """Return the ad that a matchmaker makes of a statement."""
    texts = {**statement.expressions, "Requirements": statement.requirements or "true"}
    said = {name: Expression.parse(text) for name, text in texts.items()}
    return Ad.of({**statement.attributes, **said, "CurMatches": statement.element.current_jobs})


def job(requirements: str = "true", **attributes: str) -> Ad:
    return Ad.of(
        {"Requirements": Expression.parse(requirements), "VirtualOrganisation": "lhcb", **attributes}
    )


def test_jobs_and_elements_match_by_what_ads_tell():
    element = resource(said(SiteStatement(requirements='other.JobType =!= "Test"')))
    assert matches(job("other.GlueCEPolicyMaxCPUTime >= 60 && other.AuthorizationCheck"), element)
    assert not matches(job("other.GlueCEPolicyMaxCPUTime > 60"), element), "minutes, of 3,600 s"
    assert not matches(job(JobType="Test"), element)
    assert not matches(job("other.AuthorizationCheck", VirtualOrganisation="atlas"), element)
    assert not matches(job("other.GlueCEStateWaitingJobs < 10"), element), "it does not say how many wait"


def test_a_sites_own_rule_is_a_field_of_the_element_and_holds_with_the_limits():
    own = SiteStatement(requirements="other.Urgent && CurMatches * 2 < MaxJobs")
    statement = said(own, max_jobs=10, max_submitting_jobs=4, current_jobs=3, current_submitting_jobs=1)
    assert statement.requirements == "other.Urgent"
    assert allowance(statement.element, statement.attributes) == 2, "the rule's, which is the strictest"
    looser = said(SiteStatement(requirements="CurMatches < 2 * MaxJobs"), max_jobs=10, current_jobs=9)
    assert allowance(looser.element, looser.attributes) == 1, "the limit's"


def test_the_usual_rule_by_hand_is_no_rule_of_the_sites_own():
    by_hand = SiteStatement(requirements="(CurMatches < MaxJobs)", attributes={"MaxJobs": 5_000})
    statement = said(by_hand, current_jobs=3)
    assert (statement.element.rule, statement.requirements) == ("", "")
    assert allowance(statement.element) == 4_997
    assert said(SiteStatement(attributes={"MaxJobs": 7})).element.max_jobs == 7


def test_a_full_ad_is_a_message_that_can_be_read():
    settings = SiteStatement(
        close_storage={"se": ""}, stations=["a"], attributes={"Odd": [1, True, "x", 2.5]}
    )
    statement = said(settings)
    message = Advertise(
        element=statement.element,
        advertised_at="2026-03-01T12:00:00Z",  # type: ignore[arg-type] # read as a time below
        attributes=statement.attributes,
        expressions=statement.expressions,
        requirements=statement.requirements,
    )
    read = msgspec.json.decode(msgspec.json.encode(message), type=Advertise)
    assert read.attributes == statement.attributes
    assert read.expressions == statement.expressions


@pytest.mark.parametrize(
    ("after", "what"),
    [
        (said(load=9.0), ""),
        (said(current_jobs=7), ""),
        (said(glue=replace(GLUE, running_jobs=50, waiting_jobs=9)), ""),
        (said(glue=replace(GLUE, free_job_slots=20)), ""),
        (said(glue=replace(GLUE, free_job_slots=15)), "free slots"),
        (said(glue=replace(GLUE, free_job_slots=0)), "free slots"),
        (said(glue=replace(GLUE, status="Draining")), "its state"),
        (said(glue=replace(GLUE, access_rules=())), "who may use it"),
        (said(slots=99), "what it offers"),
        (said(vos=("atlas", "lhcb")), "what it offers"),
        (said(SiteStatement(requirements="other.Urgent")), "what its site demands"),
        (said(SiteStatement(rank="1")), "what its site demands"),
    ],
)
def test_what_is_news(after: AdContent, what: str):
    assert important_change(said(), after) == what


def test_an_element_is_news_the_first_time():
    assert important_change(None, said()) == "it is new"


@pytest.mark.parametrize(
    ("before", "after", "what"),
    [(9, 10, "a limit on jobs"), (10, 9, "a limit on jobs"), (8, 9, ""), (12, 11, "jobs at a limit")],
)
def test_to_reach_a_limit_on_jobs_or_to_come_below_it_is_news(before: int, after: int, what: str):
    assert (
        important_change(said(max_jobs=10, current_jobs=before), said(max_jobs=10, current_jobs=after))
        == what
    )
    pair = [said(max_submitting_jobs=10, current_submitting_jobs=each) for each in (before, after)]
    assert important_change(*pair) == what
