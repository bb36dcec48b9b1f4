/** Name of the provider for agents with a command of their own. */
export const BUILT_IN_PROVIDER = 'local'

/** Name of the provider for this package's agent, and of its program. */
export const OWN_AGENT = 'svc'
export const OWN_AGENT_PROGRAM = 'svc-agent'
