/** /api/sandboxes: the sandboxes of sessions. */
import * as v from 'valibot'
import { Integer } from '../kernel/common.js'

/** The sandbox of one session, in state `prepared` until its agent runs. */
export const Sandbox = v.object({
  sandbox_id: v.string(),
  session_id: v.string(),
  agent_name: v.string(),
  workspace_id: v.string(),
  backend: v.string(),
  profile: v.string(),
  network: v.picklist(['host', 'none']),
  state: v.picklist(['prepared', 'running']),
})
export type Sandbox = v.InferOutput<typeof Sandbox>

/** GET /api/sandboxes. */
export const ListSandboxesQuery = v.object({ workspace_id: v.optional(v.string()) })
export const ListSandboxesReply = v.object({ sandboxes: v.array(Sandbox) })
export type ListSandboxesReply = v.InferOutput<typeof ListSandboxesReply>

/** GET /api/sandboxes/{session_id}: includes the mounts and commands of a running sandbox. */
export const SandboxReply = v.object({
  sandbox: v.object({
    ...Sandbox.entries,
    /** The longest path that contains a file determines its access; other files do not exist in the sandbox. */
    mounts: v.array(v.object({ path: v.string(), access: v.picklist(['read', 'write', 'empty', 'link']) })),
    /** Running commands besides those of the agent. */
    commands: Integer,
  }),
})
export type SandboxReply = v.InferOutput<typeof SandboxReply>

const MAX_ARGUMENTS = 256
const MAX_ARGUMENT = 32_768
const MAX_PATH = 4096
const MAX_SECONDS = 600

/** POST /api/sandboxes/{session_id}/exec: a command and its arguments, run without a shell. */
export const ExecInSandboxBody = v.strictObject({
  argv: v.pipe(v.array(v.pipe(v.string(), v.maxLength(MAX_ARGUMENT))), v.minLength(1), v.maxLength(MAX_ARGUMENTS)),
  /** A folder of the workspace, absolute or relative to it; default: its root. */
  cwd: v.optional(v.pipe(v.string(), v.maxLength(MAX_PATH))),
  /** Default: 60. */
  timeout_seconds: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(MAX_SECONDS))),
})
export type ExecInSandboxBody = v.InferOutput<typeof ExecInSandboxBody>

/** POST /api/sandboxes/{session_id}/exec: one of `exit_code` and `signal` is null. */
export const ExecInSandboxReply = v.object({
  exit_code: v.nullable(Integer),
  signal: v.nullable(v.string()),
  stdout: v.string(),
  stderr: v.string(),
  /** The output was longer than returned. */
  truncated: v.boolean(),
  timed_out: v.boolean(),
})
export type ExecInSandboxReply = v.InferOutput<typeof ExecInSandboxReply>
