/** Free-form members of an event of a session. Texts of agents are bounded before they become events. */
export type EventContent = Readonly<Record<string, unknown>>

/** An operation that the daemon performs for an agent: a file read or written, a command run. */
export interface ClientCall {
  /** Refuses the operation, with the reason in words. */
  readonly deny?: string
  readonly kind: 'read' | 'edit' | 'execute'
  /** The path, or the command and its arguments. */
  readonly title: string
  /** The argv of a command. A tap may replace it; the new command is then judged like one of the agent. */
  readonly argv?: readonly string[]
  /** Set for a command with variables chosen by the agent; taps cannot change them. */
  readonly setsEnvironment?: true
}

/** The hooks of plugins on client calls. */
export interface CallWatch {
  /** Lets plugins refuse a call or change its command. Throws an error of the protocol. */
  before(call: ClientCall): Promise<ClientCall>
  /** Called after a call that `before` accepted; `error`: the call failed or was not permitted. */
  after(call: ClientCall, error?: string): void
}

/** An operation before it is permitted, or before a person is asked. */
export interface OperationAsked {
  /** Tool kind of ACP: `read`, `edit`, `execute` … */
  readonly toolKind: string
  readonly title: string
  /** The command line, as far as the agent sends it. */
  readonly command?: string
  /** The words of the command, where the agent sends them separately. */
  readonly argv?: readonly string[]
  /** File paths, as the agent wrote them. */
  readonly paths?: readonly string[]
  /** The mode refuses the request in any case; taps are only notified. */
  readonly isRefused?: boolean
}
