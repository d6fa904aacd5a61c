"""What a conversation starts from: agents, variables, and what each agent can see."""

from __future__ import annotations

from processor.engine.plausibility.formula import Atom
from processor.engine.plausibility.update import Update, UpdateKind
from processor.engine.record import Audience
from processor.engine.state import State
from processor.engine.transition import Transition
from schemas.utterance import SetupBody

SETUP_TURN = 0
"""A setup comes before the first turn."""


def run_setup(state: State, setup: SetupBody, audience: Audience) -> Transition:
    """Declare the agents and variables; the caller commits the transition.

    Who hears the setup is aware of the variables it names.
    """
    transition = Transition(state)
    for agent in setup.agents:
        if agent.id not in state.roles:
            transition.declare_role(agent.id, agent.role)
    if setup.policy is not None:
        transition.set_own_policy(setup.policy)
    for variable in setup.variables:
        transition.update_model(
            Update(
                turn=SETUP_TURN,
                kind=UpdateKind.VARIABLE,
                formula=Atom(variable),
                audience=audience,
            )
        )
        if not state.awareness.is_everyone_aware(variable):
            transition.expand_awareness(variable, None, audience, SETUP_TURN)
    for agent_id, variables in sorted(setup.observes.items()):
        transition.update_model(
            Update(
                turn=SETUP_TURN,
                kind=UpdateKind.OBSERVES,
                agent=agent_id,
                variables=tuple(sorted(set(variables))),
                audience=audience,
            )
        )
    return transition
