"""Which policy can be had on this machine, and which is taken where the Hub does not answer.

A machine without a network is no reason to stop: the course has a policy that needs no Hub.
"""

from __future__ import annotations

import os
from dataclasses import replace
from typing import TYPE_CHECKING

from helpers.policy.hub import hub_has
from helpers.policy.loading import comes_from_the_hub, policy_path
from helpers.settings.language import say

if TYPE_CHECKING:
    from helpers.settings.profiles import Profile

EMBEDDED = "smollm2-135m"  # its weights come in a package: no Hub is asked for them


def can_be_had(name: str) -> bool:
    """Whether the weights of a policy are on this machine, or can be downloaded to it now.

    ``name``: see `helpers.policy.loading.policy_path`. Raises `PolicyError` for one that is none.
    """
    return not comes_from_the_hub(name) or hub_has(policy_path(name))


def with_policy_at_hand(profile: Profile) -> Profile:
    """The profile, with the embedded policy where its own cannot be had; one sentence says so.

    A policy that ``COURSE_POLICY`` names stays what it is: whoever asked for it is told that it
    cannot be loaded, and does not train another one unawares.
    """
    if os.environ.get("COURSE_POLICY") or can_be_had(profile.policy):
        return profile
    print(
        say(
            "The weights of {policy} are not on this machine, and the Hub does not hand them "
            "out: the policy is {embedded}, which needs no Hub.",
            policy=profile.policy,
            embedded=EMBEDDED,
        )
    )
    return replace(profile, policy=EMBEDDED)
