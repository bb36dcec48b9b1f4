import { token } from '../../../kernel/plugin.js'
import type { AgentClient, ClientContext, StartedAgent } from './client.js'

export { chooseRuntime, type EffectiveRuntime, speedWithout } from './choices/choosing.js'
export { type AgentOptions, offeredModels, type RuntimeWish } from './choices/options.js'
export { AcpErrors } from './errors.js'
export type { AgentProcess, LeftOut } from './process/agent-process.js'
export type { Block, PromptAbilities } from './process/blocks.js'
export { AgentFailure, type FailureKind, isProcessFailure } from './process/failure.js'
export { type AttachmentKind, kindOf, looksLike, MAX_FILE_BYTES, sizeOf } from './process/kinds.js'
export { ASKING, MODE_NAMES } from './process/modes.js'
export { ProcessWatch, type Pulse, pulseOf, type Watched } from './process/pulse.js'
export { permissionDenied } from './protocol/error.js'
export { AvailableCommands, type SessionUpdate, ToolCallFields, UpdateParams } from './protocol/schemas.js'
export { fileDiff } from './questions/file-diff.js'
export { boundedDiffs, firstLines, wholeDiffs } from './questions/shown.js'
export type { Clarifications } from './requests/clarifications.js'
export type { CallWatch, ClientCall, EventContent, OperationAsked } from './requests/content.js'
export { AgentGuards, type SessionGuard } from './requests/guards.js'
export type { AskedQuestion, QuestionEnd, SessionQuestion } from './requests/own-question.js'
export { contains, resolveInside, type Sight, type Territory } from './requests/paths.js'
export type { GateAnswer, PendingPermission } from './requests/permission-context.js'
export { type Decision, optionFor, type PermissionOption } from './requests/permission-rules.js'
export type { Permissions } from './requests/permissions.js'
export { bounded, boundedQuestion, type WholeQuestion } from './requests/question.js'
export { type TerminalOutput, TerminalOutputs, withOutputs } from './requests/terminal-output.js'
export type { Terminals } from './requests/terminals.js'
export type { AgentClient, ClientContext, StartedAgent }

export interface AcpApi {
  /** The client of the agent of a session, for one process of the agent. */
  clientFor(session: ClientContext): AgentClient
}

export const Acp = token<AcpApi>('acp@1')
