"""The provider `fugu/<model>`: Sakana's Fugu, with the tokens of its internal models.

Fugu reports these tokens in its usage details, outside input and output (console.sakana.ai/pricing,
read 2026-11-22). Inspect drops them, so each reply's metadata keeps the usage for `harness.usage`.
The API accepts `tool_choice` but ignores it (theopenco/llmgateway#4016, 2026-09-11).
"""

from typing import Any

from inspect_ai.model import ChatMessage, GenerateConfig, ModelCall, ModelOutput
from inspect_ai.model._providers.openai_compatible import (  # pyright: ignore[reportMissingTypeStubs] - there is no public base class
    OpenAICompatibleAPI,
)
from inspect_ai.tool import ToolChoice, ToolInfo

from podium.harness.errors import UserError
from podium.harness.usage import PROVIDER_USAGE, raw_usage

ADDRESS = "https://api.sakana.ai/v1"
EFFORTS = ("high", "xhigh", "max")
CHOOSY = ("fugu-max", "fugu-ultra")
"""Models that refuse reasoning efforts outside `EFFORTS` (llmgateway#4016;
openrouter.ai/sakana/fugu-max). `fugu-ultra` is v2.0 since 2026-09-11; its v1 and its dated names
are older models without this rule."""


class FuguAPI(OpenAICompatibleAPI):
    """Calls Fugu by its Responses API, or by chat completions with `responses_api = false`."""

    def __init__(self, model_name: str, responses_api: bool = True, **settings: Any) -> None:
        """Read key and URL from the environment if not given; UserError for a refused effort."""
        settings |= {"service": "fugu", "service_base_url": ADDRESS}
        super().__init__(model_name, responses_api=responses_api, **settings)
        effort = settings.get("config", GenerateConfig()).reasoning_effort
        if effort and effort not in EFFORTS and takes_high_efforts(model_name):
            raise UserError(
                f"{model_name} takes the reasoning efforts {', '.join(EFFORTS)}, not {effort}: set "
                "one of them in its config, or leave it out."
            )

    def initialize(self) -> None:
        """Add `/v1` to the base URL if it is missing: Sakana's examples have both forms."""
        address = str(self.base_url).rstrip("/")
        self.base_url = address if address.endswith("/v1") else f"{address}/v1"
        super().initialize()

    async def generate(
        self,
        input: list[ChatMessage],
        tools: list[ToolInfo],
        tool_choice: ToolChoice,
        config: GenerateConfig,
    ) -> ModelOutput | tuple[ModelOutput | Exception, ModelCall]:
        """Return the API's reply, with its whole usage as metadata: Inspect drops some counts."""
        result = await super().generate(input, tools, tool_choice, config)
        if isinstance(result, ModelOutput):
            return result
        output, call = result
        raw = raw_usage(call.response)
        if isinstance(output, ModelOutput) and raw is not None:
            output.metadata = {**(output.metadata or {}), PROVIDER_USAGE: dict(raw)}
        return output, call


def takes_high_efforts(model: str) -> bool:
    """Return whether a model accepts only high reasoning efforts (`EFFORTS`).

    >>> [takes_high_efforts(one) for one in ("fugu-max-v1.0", "fugu-ultra", "fugu-ultra-v2.0")]
    [True, True, True]
    >>> takes_high_efforts("fugu-ultra-20260615"), takes_high_efforts("fugu-ultra-v1.1")
    (False, False)
    """
    name, _, version = model.partition("-v")
    return name in CHOOSY and (name != "fugu-ultra" or not version or version.startswith("2"))
