"""What several test files share: the policy, its generator, a browser server, and a trainer with a
tiny random model."""

import os
import signal
import sys

import pytest

os.environ.setdefault("TRL_EXPERIMENTAL_SILENCE", "1")
# Before torch is imported: threads that wait do not spin, or they take the cores from the browsers
# that they wait for.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")
if workers := int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "0")):
    # As many threads as there are cores for each worker: more of them wait for one another at the
    # end of every operation, in a test and in whatever it starts.
    os.environ.setdefault("OMP_NUM_THREADS", str(max(1, (os.cpu_count() or 1) // workers)))
os.environ.pop("COURSE_LANGUAGE", None)  # what tests expect to be said is English

LONGEST = (  # files of a minute and more, the longest first
    "05_grpo_training",
    "test_parity",
    "03_vllm_rollout_loop",
    "test_training_run",
    "test_browser_faults",
    "06_lora_training",
    "test_vllm_weights",
    "test_vllm_server",
    "test_interrupts",
    "test_page_choice",
    "test_eyes",
    "test_practice",
    "a_policy_with_eyes",
    "test_vllm_pictures",
    "test_drawn_episodes",
    "test_rollouts",
    "test_sharing",
    "test_site",
    "test_arms",
    "test_vllm_stream",
    "test_peers_training",
    "test_not_covered",
    "test_processes",
    "test_marks",
    "test_precision",
    "test_kernel_in_jupyterlab",
)


def pytest_configure():
    """Let the interrupts that tests send arrive: where a shell has started them in the background,
    they are ignored, in every process that is started from here, too."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_collection_modifyitems(items):
    """Mark what stands in tests/docs as ``docs``, and bring the longest files to the front: of two
    workers neither is left with one of them when the other has nothing more to do."""
    rank = {stem: place for place, stem in enumerate(LONGEST)}
    for item in items:
        if item.path.parent.name == "docs":
            item.add_marker("docs")
    # Sorting keeps the order of what has the same rank.
    items.sort(key=lambda item: rank.get(item.path.stem, len(LONGEST)))


@pytest.fixture(scope="module", autouse=True)
def _memory_for_other_workers():
    """A process that has loaded a policy keeps what it frees; here others need it, too."""
    yield
    if "torch" in sys.modules:
        from helpers.policy.memory import hand_back_freed_memory

        hand_back_freed_memory()


@pytest.fixture(scope="session")
def policy():
    from helpers.policy.loading import load_policy

    return load_policy()


@pytest.fixture(scope="session")
def generator(policy):
    from helpers.policy.generators import TransformersGenerator

    return TransformersGenerator(policy.model, policy.tokenizer)


@pytest.fixture(scope="session")
def shared_server():
    """A real browser server for all tests that only open sessions: a start costs seconds."""
    from helpers.browser import start_browser_server

    with start_browser_server(workers=2, timeout=120) as server:
        yield server


@pytest.fixture(scope="session")
def browsers(shared_server):
    """Four open sessions of it."""
    return shared_server.clients(4)


@pytest.fixture
def env(shared_server):
    """One new session of it."""
    with shared_server.client() as client:
        yield client


@pytest.fixture(scope="module")
def server():
    """A real browser server of the test file's own, whose sessions it may count and whose processes
    it may kill."""
    from helpers.browser import start_browser_server

    with start_browser_server(workers=2, timeout=120) as server:
        yield server


@pytest.fixture
def tiny_trainer(policy, tmp_path):
    """A function that makes a trainer around a two-layer Llama with random weights."""
    from datasets import Dataset
    from tiny_models import tiny_llama
    from trl import GRPOConfig

    from helpers.learning.trainer import BrowserGRPOTrainer

    def make(
        cls=BrowserGRPOTrainer,
        group_size=4,
        groups=2,
        rollout_func=None,
        reward_funcs=(lambda **_: [0.0],),
        **settings,
    ):
        model = tiny_llama(policy.tokenizer)
        config = GRPOConfig(
            output_dir=str(tmp_path),
            use_cpu=True,
            bf16=False,
            num_generations=group_size,
            per_device_train_batch_size=groups * group_size,
            gradient_accumulation_steps=1,
            max_steps=1,
            report_to=[],
            disable_tqdm=True,
            beta=0.0,
            shuffle_dataset=False,
            **settings,
        )
        return cls(
            model=model,
            processing_class=policy.tokenizer,
            args=config,
            reward_funcs=list(reward_funcs),
            train_dataset=Dataset.from_list([{"prompt": str(i)} for i in range(groups)]),
            rollout_func=rollout_func,
        )

    return make
