"""Record what every call to a model uses, whichever use case makes it."""

from msgspec import UNSET

from creonowd.context.result import AssembleResult
from creonowd.engine.services import Session
from creonowd.providers.provider import Answer, Call, OnText, Provider, Purpose
from creonowd.workspace.usage import UsageRecord


class MeteredProvider:
    """A provider whose calls are recorded as those of a project, and of a skill if there is one.

    `prompt` is what the calls that write are about; it says whether their prefix had changed. A
    call that fails or is cancelled reports no counts, so that it is not recorded; nor is one
    for which no model was asked.
    """

    def __init__(
        self,
        provider: Provider,
        session: Session,
        project_id: str,
        skill_id: str = "",
        prompt: AssembleResult | None = None,
    ) -> None:
        self._provider = provider
        self._session = session
        self._project_id = project_id
        self._skill_id = skill_id
        self._prompt = prompt

    @property
    def name(self) -> str:
        """The provider's name in the settings."""
        return self._provider.name

    @property
    def judges(self) -> bool:
        """Whether it can be asked for a verdict."""
        return self._provider.judges

    async def answer(self, call: Call, on_text: OnText) -> Answer:
        """Ask the model, and record what that took."""
        answer = await self._provider.answer(call, on_text)
        if not answer.stands_in:
            await self._session.usage.record(self._record(call, answer))
        return answer

    async def close(self) -> None:
        """Close nothing: the provider is not ours."""

    def _record(self, call: Call, answer: Answer) -> UsageRecord:
        usage = answer.usage
        changed_by, lost = "", 0
        if call.purpose is Purpose.WRITE and usage is not None:
            changed_by, lost = self._prefix_loss(usage.cache_read_tokens)
        return UsageRecord(
            at_ms=self._session.clock.now_ms(),
            project_id=self._project_id,
            skill_id=self._skill_id,
            provider=self.name,
            model=call.model,
            purpose=call.purpose,
            input_tokens=None if usage is None else usage.input_tokens,
            output_tokens=0 if usage is None else usage.output_tokens,
            cache_read_tokens=0 if usage is None else usage.cache_read_tokens,
            cache_write_tokens=0 if usage is None else usage.cache_write_tokens,
            changed_by=changed_by,
            lost_tokens=lost,
        )

    def _prefix_loss(self, read: int) -> tuple[str, int]:
        """Return what changed the prefix, and how many of its tokens the cache could have had."""
        prompt = self._prompt
        if prompt is None or prompt.prefix_change is UNSET:
            return "", 0
        cacheable = [
            p.tokens
            for p in prompt.cache_break_points
            if p.hash == prompt.stable_prefix_hash and p.reaches_minimum
        ]
        return prompt.prefix_change.source_ref, max(0, max(cacheable, default=0) - read)
