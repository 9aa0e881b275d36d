"""Right and wrong answers to the exercises, each wrong one named after its mistake."""

import re

import nbformat
import torch

from helpers.course.by_hand import improved, warm_up_loss
from helpers.course.by_hand_agents import advantages as centred
from helpers.course.by_hand_agents import checkbox_agent, find_bid
from helpers.course.by_hand_ledger import append, columns, gap
from helpers.course.by_hand_lora import LoRALinear, adapter_parameters
from helpers.course.by_hand_parser import fits, split_call, worked_example
from helpers.course.by_hand_report import report
from helpers.course.by_hand_rewards import advantages, early, objective
from helpers.settings.paths import NOTEBOOKS


def solution(cell, name, **imported):
    """What the folded solution in a cell of a notebook defines; ids begin with n05 or n06.

    Its part before an empty line goes into another file and is left out. ``imported``: what cells
    above it have imported.
    """
    path = next(NOTEBOOKS.glob(f"{cell[1:3]}_*.ipynb"))
    notebook = nbformat.read(path, as_version=4)
    text = next(found.source for found in notebook.cells if found.id == cell)
    folded = r"<summary>Solution</summary>\n\n```python\n(?:\S.*\n\n)?(def .*?)```"
    defined = dict(imported)
    exec(re.search(folded, text, re.DOTALL)[1], defined)
    return defined[name]


def told_what_fails(number):
    """How the verdict on a wrong answer begins."""
    return rf"Exercise {re.escape(number)}: try again\. \S.{{5,}}"


# 1.1: the advantages of several attempts


def rewards_as_they_are(rewards):
    return rewards


def compares_with_the_best(rewards):
    return [reward - max(rewards) for reward in rewards]


def compares_with_one_half(rewards):
    return [reward - 0.5 for reward in rewards]


def divides_the_mean_again(rewards):
    mean = sum(rewards) / len(rewards)
    return [reward - mean / len(rewards) for reward in rewards]


def subtracts_the_sum(rewards):
    return [reward - sum(rewards) for reward in rewards]


def compares_with_the_others(rewards):
    """Each reward minus the mean of the others: larger by n / (n - 1)."""
    others = len(rewards) - 1
    return [reward - (sum(rewards) - reward) / others for reward in rewards]


def mean_minus_reward(rewards):
    return [-advantage for advantage in centred(rewards)]


def gives_the_mean(rewards):
    return sum(rewards) / len(rewards)


def forgets_an_attempt(rewards):
    return centred(rewards)[1:]


# 1.2: the bid of the element with a role and a name


def another_case(elements, role, name):
    of_the_role = [element for element in elements if element.role == role]
    return find_bid(of_the_role, role, name.capitalize())


def any_role(elements, role, name):
    return next((element.bid for element in elements if element.name == name), None)


def any_name(elements, role, name):
    return next((element.bid for element in elements if element.role == role), None)


def element_for_its_bid(elements, role, name):
    bid = find_bid(elements, role, name)
    return next((element for element in elements if element.bid == bid), None)


# 1.3: an agent that ticks the boxes of the goal, and then submits


def submits_at_once(seen, turn):
    return "click('24')"


def counts_turns(seen, turn):
    named = [element for element in seen.elements if element.name in seen.goal]
    return f"click('{named[turn].bid}')"


def ticks_the_first_again(seen, turn):
    return counts_turns(seen, 0)


# 2.1: name and arguments of an answer that is one call


def finds_calls_in_prose(answer):
    match = re.search(r"([A-Za-z_]\w*)\((.*)\)", answer, re.DOTALL)
    return (match[1], match[2]) if match else None


def ignores_the_rest(answer):
    match = re.match(r"(?:Action:\s*)?([A-Za-z_]\w*)\((.*)\)", answer.strip(), re.DOTALL)
    return (match[1], match[2]) if match else None


def stops_at_the_first_parenthesis(answer):
    match = re.fullmatch(r"(?:Action:\s*)?([A-Za-z_]\w*)\(([^)]*)\)", answer.strip())
    return (match[1], match[2]) if match else None


def knows_one_line_only(answer):
    match = re.fullmatch(r"(?:Action:\s*)?([A-Za-z_]\w*)\((.*)\)", answer.strip())
    return (match[1], match[2]) if match else None


def takes_numbers_for_names(answer):
    match = re.fullmatch(r"(?:Action:\s*)?(\w+)\((.*)\)", answer.strip(), re.DOTALL)
    return (match[1], match[2]) if match else None


# 2.2: whether values can be the arguments of an action


def counts_values(params, values):
    return len(values) == len(params)


def needs_all_values(params, values):
    return len(values) == len(params) and fits(params, values)


def looks_at_no_count(params, values):
    return all(fits([param], [value]) for param, value in zip(params, values, strict=False))


def takes_a_number_for_a_bid(params, values):
    return fits(params, [str(value) if isinstance(value, int) else value for value in values])


def takes_any_text_for_a_bid(params, values):
    return fits(params, ["13", *values[1:]] if values and isinstance(values[0], str) else values)


def knows_no_lists(params, values):
    return fits(params, values) and not any(isinstance(value, list) for value in values)


# 2.3: a worked example that chooses from a list


def chooses_an_option():
    return 'Select "Peru".', "[31] combobox ''\n[36] option 'Peru'", "select_option('36', 'Peru')"


def chooses_another():
    return 'Select "Peru".', "[31] combobox ''", "select_option('31', 'Chile')"


def forgets_the_quotes():
    return 'Select "Peru".', "[31] combobox ''", "select_option(31, 'Peru')"


def clicks():
    return 'Select "Peru".', "[31] combobox ''", "click('31')"


def gives_a_name_alone():
    return "select_option"


# 3.1: a ledger with more tokens at its end


def trains_on_everything(ledger, ids, logprobs=None):
    return append(ledger, ids, logprobs) | {"mask": [1] * (len(ledger["ids"]) + len(ids))}


def masks_the_prompt_alone(ledger, ids, logprobs=None):
    return append(ledger, ids, logprobs) | {"mask": ledger["mask"] + [int(1 in ledger["mask"])]}


def leaves_out_logprobs(ledger, ids, logprobs=None):
    return append(ledger, ids, logprobs) | {"logprobs": ledger["logprobs"] + (logprobs or [])}


def forgets_what_was_there(ledger, ids, logprobs=None):
    return append({"ids": [], "mask": [], "logprobs": []}, ids, logprobs)


def counts_nothing(ledger, ids, logprobs=None):
    logprobs = logprobs and [*logprobs, 0.0, 0.0][: len(ids)]
    return append(ledger, ids, logprobs)


# 3.2: how far apart the logprobs of the policy's tokens are


def has_a_sign(sampled, recomputed, mask):
    return [a - b for a, b, wrote in zip(sampled, recomputed, mask, strict=True) if wrote]


def compares_every_token(sampled, recomputed, mask):
    return gap(sampled, recomputed, [1] * len(mask))


def says_zero_for_others(sampled, recomputed, mask):
    return [abs(a - b) * wrote for a, b, wrote in zip(sampled, recomputed, mask, strict=True)]


# 3.3: what a trainer is given of a ledger


def cut(ledger, start, end):
    return {
        "prompt_ids": ledger["ids"][:start],
        "completion_ids": ledger["ids"][start:end],
        "env_mask": ledger["mask"][start:end],
        "logprobs": ledger["logprobs"][start:end],
    }


def keeps_the_last_message(ledger):
    return cut(ledger, ledger["mask"].index(1), None)


def stops_after_the_first_answer(ledger):
    mask = [*ledger["mask"], 0]
    start = mask.index(1)
    return cut(ledger, start, mask.index(0, start))


def drops_the_environment(ledger):
    kept = [i for i, wrote in enumerate(ledger["mask"]) if wrote]
    return columns(ledger) | {
        "completion_ids": [ledger["ids"][i] for i in kept],
        "env_mask": [1] * len(kept),
        "logprobs": [ledger["logprobs"][i] for i in kept],
    }


def masks_the_policy(ledger):
    found = columns(ledger)
    return found | {"env_mask": [1 - wrote for wrote in found["env_mask"]]}


# 4.1: the strict reward, less a quarter for each turn after the first


def fines_failures(strict, turns):
    paid = []
    for reward, rewards in zip(strict, turns, strict=True):
        paid.append(None if reward is None else reward - 0.25 * (len(rewards) - 1))
    return paid


def lost_earns_nothing(strict, turns):
    return [reward or 0.0 for reward in early(strict, turns)]


def never_fines(strict, turns):
    return strict


def fines_the_first_turn(strict, turns):
    return early(strict, [[0.0, *rewards] for rewards in turns])


# 4.2: the advantages of a group


def differences(rewards):
    known = [reward for reward in rewards if reward is not None]
    mean = sum(known) / max(1, len(known))
    return [0.0 if reward is None else reward - mean for reward in rewards]


def lost_is_failed(rewards):
    return advantages([reward or 0.0 for reward in rewards])


def divides_by_n(rewards):
    centred = differences(rewards)
    deviation = (sum(d * d for d in centred) / len(centred)) ** 0.5
    return [d / (deviation + 1e-4) for d in centred]


def only_centres(rewards):
    return differences(rewards)


def divides_by_nothing(rewards):
    centred = differences(rewards)
    deviation = (sum(d * d for d in centred) / (len(centred) - 1)) ** 0.5
    return [d / deviation for d in centred]


def leaves_lost_ones_out(rewards):
    return [a for a, r in zip(advantages(rewards), rewards, strict=True) if r is not None]


# 4.3: the clipped objective


def does_not_clip(ratio, advantage, epsilon):
    return ratio * advantage


def always_clips(ratio, advantage, epsilon):
    return min(max(ratio, 1 - epsilon), 1 + epsilon) * advantage


def is_a_loss(ratio, advantage, epsilon):
    return -objective(ratio, advantage, epsilon)


# 5.1: the loss of GRPO


printed_loss = solution("n05-h10", "grpo_loss", torch=torch)


def objective_of(logprobs, old_logprobs, advantages, epsilon):
    ratio = (logprobs - old_logprobs).exp()
    clipped = ratio.clamp(1 - epsilon, 1 + epsilon)
    return torch.minimum(ratio * advantages[:, None], clipped * advantages[:, None])


def mean_of_rollouts(logprobs, old_logprobs, advantages, mask, epsilon):
    objective = objective_of(logprobs, old_logprobs, advantages, epsilon)
    return -((objective * mask).sum(1) / mask.sum(1)).mean()


def forgets_the_mask(logprobs, old_logprobs, advantages, mask, epsilon):
    return -objective_of(logprobs, old_logprobs, advantages, epsilon).mean()


def divides_by_every_token(logprobs, old_logprobs, advantages, mask, epsilon):
    return -(objective_of(logprobs, old_logprobs, advantages, epsilon) * mask).mean()


def loss_without_clip(logprobs, old_logprobs, advantages, mask, epsilon):
    return printed_loss(logprobs, old_logprobs, advantages, mask, 1e6)


def loss_always_clipped(logprobs, old_logprobs, advantages, mask, epsilon):
    ratio = (logprobs - old_logprobs).exp().clamp(1 - epsilon, 1 + epsilon)
    return -(ratio * advantages[:, None] * mask).sum() / mask.sum()


def rises_with_the_reward(logprobs, old_logprobs, advantages, mask, epsilon):
    return -printed_loss(logprobs, old_logprobs, advantages, mask, epsilon)


def ratio_upside_down(logprobs, old_logprobs, advantages, mask, epsilon):
    return printed_loss(old_logprobs, logprobs, advantages, mask, epsilon)


def is_a_number(logprobs, old_logprobs, advantages, mask, epsilon):
    return printed_loss(logprobs, old_logprobs, advantages, mask, epsilon).item()


# 5.2: the cross-entropy of the tokens that a script wrote


def each_token_for_itself(logits, ids, mask):
    logprobs = logits.log_softmax(-1).gather(-1, ids[:, None]).squeeze(-1)
    return -(logprobs * mask).sum() / mask.sum()


def masks_the_token_before(logits, ids, mask):
    chosen = logits[:-1].log_softmax(-1).gather(-1, ids[1:, None]).squeeze(-1)
    return -(chosen * mask[:-1]).sum() / mask[:-1].sum()


def learns_the_page_too(logits, ids, mask):
    return warm_up_loss(logits, ids, torch.ones_like(mask))


def divides_by_all_tokens(logits, ids, mask):
    return warm_up_loss(logits, ids, mask) * mask.sum() / len(mask)


def adds_instead(logits, ids, mask):
    return warm_up_loss(logits, ids, mask) * mask.sum()


def forgets_the_softmax(logits, ids, mask):
    chosen = logits[:-1].gather(-1, ids[1:, None]).squeeze(-1)
    return -(chosen * mask[1:]).sum() / mask[1:].sum()


def unlearns(logits, ids, mask):
    return -warm_up_loss(logits, ids, mask)


def warm_up_number(logits, ids, mask):
    return warm_up_loss(logits, ids, mask).item()


# 5.3: pages that were gained and lost between two evaluations


def difference_of_sums(before, after):
    return max(0, sum(after) - sum(before)), max(0, sum(before) - sum(after))


def both_sums(before, after):
    return sum(after), sum(before)


def the_other_way_round(before, after):
    return improved(after, before)


# 6.1: parameters of an adapter


def multiplies_both_parts(d_in, d_out, rank):
    return d_in * rank * rank * d_out


def counts_the_whole_matrix(d_in, d_out, rank):
    return d_in * d_out


def counts_one_part(d_in, d_out, rank):
    return rank * d_in


# 6.2: a linear layer with an adapter


class StartsWithBoth(LoRALinear):
    def __init__(self, linear, r, alpha):
        super().__init__(linear, r, alpha)
        torch.nn.init.normal_(self.B)


class StartsWithNone(LoRALinear):
    def __init__(self, linear, r, alpha):
        super().__init__(linear, r, alpha)
        torch.nn.init.zeros_(self.A)


class IgnoresTheRank(LoRALinear):
    def __init__(self, linear, r, alpha):
        super().__init__(linear, r, alpha)
        self.scale = alpha


class IgnoresAlpha(LoRALinear):
    def __init__(self, linear, r, alpha):
        super().__init__(linear, r, alpha)
        self.scale = 1.0


class TrainsEverything(LoRALinear):
    def __init__(self, linear, r, alpha):
        super().__init__(linear, r, alpha)
        self.linear.requires_grad_(True)


class TrainsTheBias(LoRALinear):
    def __init__(self, linear, r, alpha):
        super().__init__(linear, r, alpha)
        self.linear.bias.requires_grad_(True)


class HasTensors(LoRALinear):
    def __init__(self, linear, r, alpha):
        super().__init__(linear, r, alpha)
        first, second = self.A.detach(), self.B.detach()
        del self.A, self.B
        self.A, self.B = first, second


class SwapsShapes(LoRALinear):
    def __init__(self, linear, r, alpha):
        super().__init__(linear, r, alpha)
        self.A = torch.nn.Parameter(self.A.T.clone())
        self.B = torch.nn.Parameter(self.B.T.clone())

    def forward(self, x):
        return self.linear(x) + self.scale * (x @ self.A @ self.B)


class MultipliesOnce(LoRALinear):
    def __init__(self, linear, r, alpha):
        super().__init__(linear, r, alpha)
        self.product = (self.B @ self.A).detach()

    def forward(self, x):
        return self.linear(x) + self.scale * (x @ self.product.T)


class ForgetsTheBias(LoRALinear):
    def forward(self, x):
        return super().forward(x) - self.linear.bias


class ForgetsTheLayer(LoRALinear):
    def forward(self, x):
        return super().forward(x) - self.linear(x)


# 6.4: a sentence with rates, difference, interval and n


def gives_rates_alone(result):
    before = 100 * result["before"]["success"]
    after = 100 * result["after"]["success"]
    return f"{before:.0f} % -> {after:.0f} %"


def leaves_out_n(result):
    return report(result).split(", n = ")[0]


def leaves_out_the_change(result):
    return report(result).split(", change")[0]


def reports_before_twice(result):
    return report(result | {"after": result["before"]})


def says_always_the_same(result):
    return "12 % [9, 21] -> 85 % [81, 95], n = 100; change +73 [+68, +77]"


RIGHT = {
    "1.1": centred,
    "1.2": find_bid,
    "1.3": checkbox_agent,
    "2.1": split_call,
    "2.2": fits,
    "2.3": worked_example,
    "3.1": append,
    "3.2": gap,
    "3.3": columns,
    "4.1": early,
    "4.2": advantages,
    "4.3": objective,
    "5.1": printed_loss,
    "5.2": warm_up_loss,
    "5.3": improved,
    "6.1": adapter_parameters,
    "6.2": LoRALinear,
    "6.4": report,
}
WRONG = {
    "1.1": [
        rewards_as_they_are,
        compares_with_the_best,
        compares_with_one_half,
        divides_the_mean_again,
        subtracts_the_sum,
        compares_with_the_others,
        mean_minus_reward,
        gives_the_mean,
        forgets_an_attempt,
    ],
    "1.2": [another_case, any_role, any_name, element_for_its_bid],
    "1.3": [submits_at_once, counts_turns, ticks_the_first_again],
    "2.1": [
        finds_calls_in_prose,
        ignores_the_rest,
        stops_at_the_first_parenthesis,
        knows_one_line_only,
        takes_numbers_for_names,
    ],
    "2.2": [
        counts_values,
        needs_all_values,
        looks_at_no_count,
        takes_a_number_for_a_bid,
        takes_any_text_for_a_bid,
        knows_no_lists,
    ],
    "2.3": [chooses_an_option, chooses_another, forgets_the_quotes, clicks, gives_a_name_alone],
    "3.1": [
        trains_on_everything,
        masks_the_prompt_alone,
        leaves_out_logprobs,
        forgets_what_was_there,
        counts_nothing,
    ],
    "3.2": [has_a_sign, compares_every_token, says_zero_for_others],
    "3.3": [
        keeps_the_last_message,
        stops_after_the_first_answer,
        drops_the_environment,
        masks_the_policy,
    ],
    "4.1": [fines_failures, lost_earns_nothing, never_fines, fines_the_first_turn],
    "4.2": [
        lost_is_failed,
        divides_by_n,
        only_centres,
        divides_by_nothing,
        leaves_lost_ones_out,
    ],
    "4.3": [does_not_clip, always_clips, is_a_loss],
    "5.1": [
        mean_of_rollouts,
        forgets_the_mask,
        divides_by_every_token,
        loss_without_clip,
        loss_always_clipped,
        rises_with_the_reward,
        ratio_upside_down,
        is_a_number,
    ],
    "5.2": [
        each_token_for_itself,
        masks_the_token_before,
        learns_the_page_too,
        divides_by_all_tokens,
        adds_instead,
        forgets_the_softmax,
        unlearns,
        warm_up_number,
    ],
    "5.3": [difference_of_sums, both_sums, the_other_way_round],
    "6.1": [multiplies_both_parts, counts_the_whole_matrix, counts_one_part],
    "6.2": [
        StartsWithBoth,
        StartsWithNone,
        IgnoresTheRank,
        IgnoresAlpha,
        TrainsEverything,
        TrainsTheBias,
        HasTensors,
        SwapsShapes,
        MultipliesOnce,
        ForgetsTheBias,
        ForgetsTheLayer,
    ],
    "6.4": [
        gives_rates_alone,
        leaves_out_n,
        leaves_out_the_change,
        reports_before_twice,
        says_always_the_same,
    ],
}
