/** Name of the provider that runs the command an agent names itself. */
export const BUILT_IN_PROVIDER = 'local'

/** Name of the provider that runs the agent of this package, and of its program. */
export const OWN_AGENT = 'svc'
export const OWN_AGENT_PROGRAM = 'svc-agent'
