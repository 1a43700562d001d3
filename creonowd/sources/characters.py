"""Characters and other entities of a project: one per file of `characters/`.

Those that are always injected belong to Rules. The others come as retrieved text when they are
mentioned, so that they never change the stable prefix. So do notes of the settings that wait to be
mentioned.
"""

import json
import re
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from enum import StrEnum
from functools import lru_cache
from itertools import chain
from pathlib import PurePosixPath
from typing import Any, NamedTuple, cast

from msgspec.structs import replace

from creonowd.context.fragment import (
    DEFAULT_PRIORITY,
    Caution,
    Fragment,
    FragmentKind,
    Layer,
    caution,
)
from creonowd.context.language import ManuscriptLanguage
from creonowd.context.names import Mentions, NameParts, SpottedNames, unambiguous_parts
from creonowd.context.plan import Document, Need, Summary
from creonowd.context.source import PendingResult, Source, SourceQuery, SourceResult
from creonowd.errors import WarningCode, Wording
from creonowd.memo import Memo
from creonowd.model import Model
from creonowd.sources.file_fragments import (
    FRONT_MATTER,
    NAME_KEYS,
    TITLE_KEYS,
    FileFaultError,
    FileKind,
    is_json_path,
    read_files,
)
from creonowd.storage import front_matter
from creonowd.text import as_text, join_lines
from creonowd.threads import BatchCache
from creonowd.tokens.tokenizer import about_tokens
from creonowd.workspace.creonow_tree import (
    MEMORY,
    CreonowFolder,
    Folder,
    FolderReader,
    ProjectRead,
    ReadPlace,
)

CHARACTER_GROUP = 3
SCORE_WHEN_MENTIONED = 0.9
MAX_PRIORITY = 1_000_000
LONGEST_HEADING = 20
RELATION_KEYS = ("relations", "关系")
PEOPLE_TO_RELATE = 2
ALIAS_KEYS = ("aliases", "alias", "别名", "别称")
TITLE_KEYS_OF_PEOPLE = ("titles", "称号", "头衔", "称谓")

# Where names are looked for. It begins on a coarse grid, so that names leave in steps and not
# with every letter.
STEP = 2000
STEPS_BACK = 2
CHARACTERS_AHEAD = 1000

# The bytes of the folders with them.
KEPT_WEIGHT = 24_000_000
KEPT_FOLDERS = 8
KEPT_RESULTS = 512
KEPT_CARD_CHARACTERS = 2_000_000

_HEADING = re.compile(r"^# +(.+?) *#* *\r?$", re.MULTILINE)
_PRIORITY = Wording(
    f"`priority` must be a whole number, at most {MAX_PRIORITY}",
    f"priority 须为整数，绝对值不超过 {MAX_PRIORITY}",
)
_INJECT = Wording(
    "`inject` must be always, mentioned, manual or never",
    "inject 须为 always、mentioned、manual 或 never",
)
_ALIASES = Wording("`aliases` must be texts", "aliases 须为文本")
_RELATIONS = Wording(
    "`relations` must be names with texts, such as {Lydia: her sister}",
    "relations 须为“名字: 说明”，例如 {黛玉: 表妹}",
)
_COLON = re.compile(r"[:：]")
_NAME = Wording("the name must be a text", "名字须为文本")
_SEPARATORS = re.compile(r"[,，、;；/]")


class Inject(StrEnum):
    """When an entity enters a prompt: in Rules, as a retrieved chunk, or not by itself."""

    ALWAYS = "always"
    """With every prompt of a skill that reads such texts."""
    MENTIONED = "mentioned"
    """When the text near the cursor or the request names it."""
    MANUAL = "manual"
    """When the selection or the request names it."""
    NEVER = "never"
    """Not at all."""


class Entity(Model):
    """What a file says about its entity; the first of `names` is its own."""

    names: tuple[str, ...]
    priority: int = DEFAULT_PRIORITY
    inject: Inject = Inject.ALWAYS
    relations: tuple[tuple[str, str], ...] = ()


class RelatedEntity(Model):
    """A card, what its entity is called, and what it says of others, each by a name.

    `tokens` is about how many it has. `since` and `until` are those of the card: its relations hold
    as long as it does.
    """

    source_ref: str
    names: tuple[str, ...]
    relations: tuple[tuple[str, str], ...]
    since: str = ""
    until: str = ""
    tokens: float = 0


class Entities(Model, cache_hash=True):
    """The names of every entity, and what is injected when it is mentioned: entities and notes.

    `manual` ones are injected only if the author names them in the selection or the request,
    those of `never` not at all.
    """

    names: tuple[tuple[str, ...], ...]
    mentioned: tuple[Fragment, ...]
    manual: tuple[Fragment, ...]
    related: tuple[RelatedEntity, ...] = ()
    never: tuple[Fragment, ...] = ()

    @property
    def cards(self) -> list[tuple[str, tuple[str, ...]]]:
        """The reference and the names of every card, those that are never injected last."""
        known = [(one.source_ref, one.names) for one in self.related]
        return known + [(one.source_ref, one.names) for one in self.never]

    @property
    def card_tokens(self) -> float:
        """About how many tokens the cards have that are injected in some way."""
        return _names_of(self).card_tokens

    @property
    def every_name(self) -> tuple[str, ...]:
        """All names of all entities."""
        return _names_of(self).listed

    @property
    def weight(self) -> int:
        """Return about how many characters keeping this takes."""
        texts = sum(fragment.weight for fragment in (*self.mentioned, *self.manual))
        return texts + 100 * len(self.names)


class _EntityNames(NamedTuple):
    """The names of entities: all of them, those of each kind, and all that are searched for.

    Those are also whom cards relate to. `card_tokens` is about how many tokens the cards have.
    """

    listed: tuple[str, ...]
    every: frozenset[str]
    mentioned: frozenset[str]
    manual: tuple[str, ...]
    searched: tuple[str, ...]
    card_tokens: float


# To gather them from a hundred cards took each assembly 15 µs.
@lru_cache(maxsize=KEPT_FOLDERS)
def _names_of(entities: Entities) -> _EntityNames:
    listed = tuple(chain.from_iterable(entities.names))
    mentioned = frozenset(chain.from_iterable([one.names for one in entities.mentioned]))
    related = {name for one in entities.related for name, _ in one.relations}
    return _EntityNames(
        listed=listed,
        every=frozenset(listed),
        mentioned=mentioned,
        manual=tuple(chain.from_iterable([one.names for one in entities.manual])),
        searched=tuple(sorted({*listed, *mentioned, *related})),
        card_tokens=sum(one.tokens for one in entities.related),
    )


class EntityCache:
    """The entities that were made of character files, for all projects."""

    def __init__(self) -> None:
        self.mentions = Mentions()
        self._made: Memo[tuple[Folder, Folder], Entities] = Memo(
            KEPT_WEIGHT,
            lambda folders, entities: entities.weight + sum(one.weight for one in folders),
        )
        self.named: Memo[Hashable, SourceResult] = Memo(KEPT_RESULTS)

    def entities(self, folder: Folder, notes: Folder) -> Entities:
        """Return the entities of a folder, and the notes among them."""
        return self._made.get((folder, notes), lambda: _entities(folder, notes))


class ProjectEntities(ProjectRead[Entities]):
    """The entities of one project, for one assembly."""

    name = "entities"

    def __init__(self, place: ReadPlace, cache: EntityCache) -> None:
        super().__init__(place)
        self._cache = cache

    @property
    def results(self) -> Memo[Hashable, SourceResult]:
        """The answers that were made of names that a text mentions."""
        return self._cache.named

    def find(self, names: Iterable[str], text: str) -> frozenset[str]:
        """Return those of the names that occur in a text."""
        return self._cache.mentions.find(names, text)

    def spot(self, entities: Entities, text: str) -> SpottedNames:
        """Search a text once for all names of entities, and for those that cards relate to."""
        return self._cache.mentions.spot(_names_of(entities).searched, text)

    def locate(self, names: Iterable[str], text: str) -> Iterator[tuple[str, int, int]]:
        """Return each of the names in a text, with where it begins and ends."""
        return self._cache.mentions.locate(names, text)

    def read(self, folders: FolderReader) -> Entities:
        """Read the entities of the files that are there now."""
        return self._cache.entities(
            folders.folder(CreonowFolder.CHARACTERS), folders.folder(CreonowFolder.SETTINGS)
        )


class MentionedSource(Source):
    """The entities of one project that the text or the author mentions."""

    layer = Layer.RETRIEVED
    name = "mentioned"
    need = Need.EVIDENCE
    unavailable = caution(WarningCode.CHARACTERS_UNAVAILABLE)

    def __init__(self, entities: ProjectEntities) -> None:
        self._entities = entities

    def fetch(self, ask: SourceQuery) -> SourceResult | PendingResult:
        """Return the entities that are named near the cursor, or by the author."""
        entities = self._entities.peek()
        return self._read(ask) if entities is None else self._named_in(entities, ask)

    async def _read(self, ask: SourceQuery) -> SourceResult:
        return self._named_in(await self._entities.get(), ask)

    def revision(self) -> Hashable | None:
        """Return the entities, if they were read ahead."""
        return self._entities.revision()

    def read_ahead(self, cache: BatchCache) -> None:
        """Read the files now, together with others; blocks its thread."""
        self._entities.read_ahead(cache)

    def _named_in(self, entities: Entities, ask: SourceQuery) -> SourceResult:
        ahead = CHARACTERS_AHEAD if ask.here is None or ask.sees_future else 0
        near = f"{_chapter_before(ask)}\n{_near(ask.document, ahead)}\n{ask.wish}"
        names, spotted = _names_of(entities), self._entities.spot(entities, near)
        mentioned, everyone = spotted.of(names.mentioned), spotted.of(names.every)
        wished = self._entities.find(names.manual, ask.wish)
        related = spotted.of(_related_names(entities, everyone))
        # As long as the same people are on the page, the same is said of them.
        people = _PeopleOnPage(entities, mentioned, wished, everyone, related, ask.language)
        return self._entities.results.get(people, lambda: self._result(people))

    def _result(self, people: "_PeopleOnPage") -> SourceResult:
        entities, mentioned, wished, everyone, related, language = people
        found = [
            *(one for one in entities.mentioned if mentioned.intersection(one.names)),
            *(one for one in entities.manual if wished.intersection(one.names)),
        ]
        relations, are_given = self._relations(entities, everyone, related, language)
        return SourceResult(
            fragments=(*found, *relations), summaries=(Summary.RELATIONS,) if are_given else ()
        )

    def _relations(
        self,
        entities: Entities,
        everyone: frozenset[str],
        related: frozenset[str],
        language: ManuscriptLanguage,
    ) -> tuple[list[Fragment], bool]:
        """Return what the cards say of the people on the page, and whether that is all one can ask.

        Where the page has not two people with cards there is nothing to relate.
        """
        here = [one for one in entities.related if everyone.intersection(one.names)]
        colon = "：" if language is ManuscriptLanguage.CHINESE else ": "
        fragments: list[Fragment] = []
        for one in here:
            called = {
                name: card.names[0] for card in here if card is not one for name in card.names
            }
            others = [(called.get(name, name), relation) for name, relation in one.relations]
            shown = [
                f"{one.names[0]} – {name}{colon}{relation}"
                for name, relation in others
                if name in called.values() or name in related
            ]
            if shown:
                fragments.append(
                    Fragment(
                        layer=self.layer,
                        source="relations",
                        source_ref=f"{one.source_ref}#relations",
                        text="\n".join(shown),
                        score=SCORE_WHEN_MENTIONED,
                        since=one.since,
                        until=one.until,
                    )
                )
        return fragments, bool(fragments) or len(here) < PEOPLE_TO_RELATE


def _related_names(entities: Entities, everyone: frozenset[str]) -> frozenset[str]:
    """Return the names, of whatever kind, that the cards of the people on the page relate to."""
    here = (one for one in entities.related if one.relations)
    return frozenset(
        name for one in here if everyone.intersection(one.names) for name, _ in one.relations
    )


class _PeopleOnPage(NamedTuple):
    """The entities on a page, those in the author's wish, and those that cards relate them to."""

    entities: Entities
    mentioned: frozenset[str]
    wished: frozenset[str]
    everyone: frozenset[str]
    related: frozenset[str]
    language: ManuscriptLanguage


def _chapter_before(ask: SourceQuery) -> str:
    """Return what the prompt shows of the chapter before; a new chapter begins with its people."""
    return "" if ask.previous is None else ask.previous.text[ask.previous_start :]


def _near(document: Document | None, ahead: int) -> str:
    if document is None:
        return ""
    here = document.here
    start = max(0, (here.start // STEP - STEPS_BACK) * STEP)
    return document.text[start : here.end + ahead]


def characters(folder: Folder) -> SourceResult:
    """Read every character that is always part of the rules."""
    read = _read(folder, Inject.ALWAYS)
    ambiguous = _parts(folder).ambiguous
    if not ambiguous:
        return read
    listed = "; ".join(f"{part} ({', '.join(paths)})" for part, paths in ambiguous.items())
    wording = Wording(
        f"These parts of names could be several characters and count for none: {listed}",
        f"这些称呼可能指多个角色，因此不算提到任何人：{listed}",
    )
    warning = Caution(
        code=WarningCode.CHARACTER_NAME_AMBIGUOUS,
        wording=wording,
        layer=Layer.RULES,
        details=(("names", "、".join(ambiguous)),),
    )
    return replace(read, warnings=(*read.warnings, warning))


# Every reading of a folder needs them: that of each kind of entity, and that of the warning.
_name_parts: Memo[Folder, NameParts] = Memo(KEPT_WEIGHT, lambda folder, _parts: folder.weight)


def _parts(folder: Folder) -> NameParts:
    """Return the parts of names that count in a project; files with faults have none."""
    return _name_parts.get(
        folder,
        lambda: unambiguous_parts({path: one.names for path, one in entities_in(folder).items()}),
    )


def entities_in(folder: Folder) -> dict[str, Entity]:
    """Return what each file says about its entity, by path; files with faults are left out."""
    found: dict[str, Entity] = {}
    for file in folder.files:
        text = as_text(file.data)
        with suppress(ValueError, RecursionError):
            if text is not None and text.strip():
                found[file.path] = read_entity(file.path, text)
    return found


def _entities(folder: Folder, notes: Folder) -> Entities:
    """Read all entities; files that make no sense are reported by other readers, not here."""
    always, mentioned, manual = (
        _read(folder, inject).fragments
        for inject in (Inject.ALWAYS, Inject.MENTIONED, Inject.MANUAL)
    )
    cards = (*always, *mentioned, *manual)
    described = entities_in(folder)
    related = tuple(
        RelatedEntity(
            source_ref=card.source_ref,
            names=card.names,
            relations=described[card.source_ref].relations,
            since=card.since,
            until=card.until,
            tokens=about_tokens(card.text),
        )
        for card in cards
    )
    names = tuple(card.names for card in cards)
    never = _read(folder, Inject.NEVER).fragments
    return Entities(
        names=names,
        mentioned=(*mentioned, *_notes(notes, Inject.MENTIONED)),
        manual=(*manual, *_notes(notes, Inject.MANUAL)),
        related=related,
        never=never,
    )


def _notes(folder: Folder, inject: Inject) -> tuple[Fragment, ...]:
    """Return the notes of the settings that wait to be mentioned in one way."""
    kind = FileKind(
        layer=Layer.RETRIEVED,
        source="settings",
        unavailable=WarningCode.SETTINGS_UNAVAILABLE,
        timed=True,
    )

    def fields(path: str, text: str) -> dict[str, Any] | None:
        if note_inject(path, text) is not inject:
            return None
        return {
            "kind": FragmentKind.ENTITY,
            "names": note_names(path, text),
            "score": SCORE_WHEN_MENTIONED,
        }

    return read_files(kind, folder, lambda path: path != MEMORY, fields).fragments


def waiting_notes(folder: Folder) -> dict[str, Inject]:
    """Return the notes of the settings that are not always injected, by path."""
    found: dict[str, Inject] = {}
    for file in folder.files:
        with suppress(ValueError, RecursionError):
            found[file.path] = note_inject(file.path, as_text(file.data) or "")
    return {path: inject for path, inject in found.items() if inject is not Inject.ALWAYS}


def note_inject(path: str, text: str) -> Inject:
    """Return when a note of the settings is injected; FileFaultError if that makes no sense."""
    return _inject(_note_values(path, text))


def note_names(path: str, text: str) -> tuple[str, ...]:
    """Return what a note is called; FileFaultError if that makes no sense."""
    return _names(_note_values(path, text), path, text, TITLE_KEYS)


def _note_values(path: str, text: str) -> Mapping[str, Any]:
    """Return the keys of a note; between two lines `---` may stand prose."""
    return _values(path, text) if is_json_path(path) else front_matter.split(text).values


def _read(folder: Folder, inject: Inject) -> SourceResult:
    is_rule = inject is Inject.ALWAYS
    kind = FileKind(
        layer=Layer.RULES if is_rule else Layer.RETRIEVED,
        source="characters",
        unavailable=WarningCode.CHARACTERS_UNAVAILABLE,
        group=CHARACTER_GROUP if is_rule else 0,
        timed=True,
    )

    parts = _parts(folder)

    def fields(path: str, text: str) -> dict[str, Any] | None:
        entity = read_entity(path, text)
        if entity.inject is not inject:
            return None
        return {
            "kind": FragmentKind.ENTITY,
            "names": (*entity.names, *parts.own.get(path, ())),
            "priority": entity.priority,
            "score": None if is_rule else SCORE_WHEN_MENTIONED,
        }

    return read_files(kind, folder, lambda _path: True, fields)


# After a start seven readers ask for every card: to read a hundred anew each time took 6 ms more.
_DESCRIBED: Memo[tuple[str, str], Entity] = Memo(
    KEPT_CARD_CHARACTERS, lambda key, _entity: 500 + len(key[1])
)


def read_entity(path: str, text: str) -> Entity:
    """Read what a file says about its entity; FileFaultError if that makes no sense.

    Without a name of its own an entity is called as its file is, and as its first heading says.
    """
    return _DESCRIBED.get((path, text), lambda: _describe(path, text))


def _describe(path: str, text: str) -> Entity:
    values = _values(path, text)
    priority = values.get("priority", DEFAULT_PRIORITY)
    if isinstance(priority, bool) or not isinstance(priority, int) or abs(priority) > MAX_PRIORITY:
        raise FileFaultError(_PRIORITY, near="priority")
    inject = _inject(values)
    return Entity(
        names=_names(values, path, text),
        priority=priority,
        inject=inject,
        relations=_relations(values),
    )


def _inject(values: Mapping[str, Any]) -> Inject:
    inject = values.get("inject", Inject.ALWAYS)
    if inject not in list(Inject):
        raise FileFaultError(_INJECT, near="inject")
    return Inject(inject)


def _relations(values: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    """Read what a card says of others: a mapping of names to texts, or a list of `name: text`."""
    given = _first(values, RELATION_KEYS)
    if given is None:
        return ()
    if isinstance(given, list) and _is_texts(cast("list[object]", given)):
        listed = cast("list[str]", given)
        split = [_COLON.split(one, maxsplit=1) for one in listed]
        pairs: list[tuple[object, object]] = [(one[0], one[-1]) for one in split if len(one) > 1]
        pairs += [(None, None)] * (len(listed) - len(pairs))
    elif isinstance(given, list):
        items = cast("list[object]", given)
        maps = [cast("dict[object, object]", one) for one in items if isinstance(one, dict)]
        pairs = [pair for each in maps for pair in each.items()]
        pairs += [(None, None)] * (len(items) - len(maps))
    else:
        pairs = (
            list(cast("dict[object, object]", given).items())
            if isinstance(given, dict)
            else [(None, None)]
        )
    if not all(isinstance(text, str) and text.strip() for pair in pairs for text in pair):
        raise FileFaultError(_RELATIONS, near=next(key for key in RELATION_KEYS if key in values))
    return tuple((str(name).strip(), join_lines(str(relation)).strip()) for name, relation in pairs)


def _values(path: str, text: str) -> Mapping[str, Any]:
    if is_json_path(path):
        value = json.loads(text)
        return cast("dict[str, Any]", value) if isinstance(value, dict) else {}
    return header_values(text)


def header_values(text: str) -> Mapping[str, Any]:
    """Return the keys of a front matter; FileFaultError if it makes no sense."""
    read = front_matter.read(text)
    if read is None:
        return {}
    if read.faults:
        first = read.faults[0]
        raise FileFaultError(FRONT_MATTER.format(first.wording), first.line)
    return read.values


def _names(
    values: Mapping[str, Any], path: str, text: str, keys: Sequence[str] = NAME_KEYS
) -> tuple[str, ...]:
    own, aliases = _first(values, keys), _first(values, ALIAS_KEYS)
    others = _SEPARATORS.split(aliases) if isinstance(aliases, str) else (aliases or [])
    if not _is_texts(others):
        raise FileFaultError(_ALIASES, near=next(key for key in ALIAS_KEYS if key in values))
    if own is None:
        own, others = PurePosixPath(path).stem, [*note_heading(path, text), *others]
    if not isinstance(own, str) or not own.strip():
        raise FileFaultError(_NAME, near=next((key for key in keys if key in values), ""))
    titles = _first(values, TITLE_KEYS_OF_PEOPLE)
    called = _SEPARATORS.split(titles) if isinstance(titles, str) else (titles or [])
    if not _is_texts(called):
        raise FileFaultError(_ALIASES, near="titles")
    every = (own, *others, *called)
    return tuple(dict.fromkeys(name.strip() for name in every if name.strip()))


def _first(values: Mapping[str, Any], keys: Iterable[str]) -> Any:
    return next((values[key] for key in keys if key in values), None)


def note_heading(path: str, text: str) -> list[str]:
    """Return the first heading of a file, if it is short enough to be a name."""
    heading = None if is_json_path(path) else _HEADING.search(text)
    return [heading[1]] if heading and len(heading[1]) <= LONGEST_HEADING else []


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(
        isinstance(item, str) for item in cast("list[object]", value)
    )
