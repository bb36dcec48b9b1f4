/** What the scripted agent does in a turn; the prompt is this as JSON. */
export interface Script {
  readonly kind: 'text' | 'tool'
  readonly updates: number
  /** Of each. */
  readonly bytes: number
  readonly gapMs: number
}

/** A small process that stands for the agent and leads to the one that plays it. */
export const relay = (port: number) => ['bash', '-c', `exec 3<>/dev/tcp/127.0.0.1/${port}; cat <&3 & exec cat >&3`]
