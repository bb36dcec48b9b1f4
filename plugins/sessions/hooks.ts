import type { PluginKernel } from '../../kernel/plugin.js'
import type { SessionHealth } from '../../schemas/sessions.js'
import type { NewSession, SessionInfo, SessionLaunch, SessionStart } from './api.js'
import type { SessionUse } from './journal/uses.js'
import type * as points from './points.js'

/** Milliseconds for a decision about a sandbox: the first one tries whether there can be any. */
const CONFINE_MS = 30_000

/** The same for what programs of a person may have a say in; whoever runs them bounds each. */
const DECIDE_MS = 600_000
const decide = { deadlineMs: DECIDE_MS }

/** The hooks of sessions, as {@link SessionsApi} explains them. */
export class SessionHooks {
  readonly stopped
  readonly permission
  readonly creating
  readonly launching
  readonly prepare
  readonly healthUpdated
  readonly preCreate
  readonly postCreate
  readonly preResume
  readonly postResume
  readonly preStop
  readonly recoveryStarted
  readonly recoverySucceeded
  readonly recoveryExhausted
  readonly attentionChanged
  readonly messagePersisted
  readonly inputPreSubmit
  readonly promptPostAssemble
  readonly eventRecording
  readonly eventRecorded
  readonly used
  readonly agentPreStart
  readonly agentSpawned
  readonly agentCrashed
  readonly agentStopped
  readonly healthCheckFailed
  readonly turnStart
  readonly turnEnd
  readonly messageStart
  readonly messageDelta
  readonly messageEnd
  readonly toolPreCall
  readonly toolPostCall
  readonly toolPostError
  readonly permissionResolved
  readonly permissionDenied
  readonly contextCompacted
  readonly worktreePreCreate
  readonly worktreeCreated
  readonly worktreeAdopted
  readonly worktreePreRemove
  readonly worktreeRemoved

  constructor({ hooks }: Pick<PluginKernel, 'hooks'>) {
    this.stopped = hooks.notify<[SessionInfo]>('sessions.stopped')
    this.permission = hooks.gate<[points.PermissionAsked]>('sessions.permission', { deadlineMs: DECIDE_MS })
    this.creating = hooks.gate<[NewSession]>('sessions.creating', { deadlineMs: CONFINE_MS })
    this.launching = hooks.gate<[SessionLaunch]>('sessions.launching', { deadlineMs: CONFINE_MS })
    this.prepare = hooks.pipeline<SessionStart, [SessionInfo]>('sessions.prepare')
    this.healthUpdated = hooks.notify<[SessionHealth]>('sessions.health.updated')
    this.preCreate = hooks.pipeline<points.SessionWish>('session.pre_create', decide)
    this.postCreate = hooks.notify<[SessionInfo]>('session.post_create')
    this.preResume = hooks.pipeline<points.ResumeWish, [SessionInfo]>('session.pre_resume', decide)
    this.postResume = hooks.notify<[SessionInfo]>('session.post_resume')
    this.preStop = hooks.pipeline<points.StopWish, [SessionInfo]>('session.pre_stop', decide)
    this.recoveryStarted = hooks.notify<[SessionInfo]>('session.runtime_recovery.started')
    this.recoverySucceeded = hooks.notify<[SessionInfo]>('session.runtime_recovery.succeeded')
    this.recoveryExhausted = hooks.notify<[SessionInfo]>('session.runtime_recovery.exhausted')
    this.attentionChanged = hooks.notify<[SessionInfo, boolean]>('session.attention.changed')
    this.messagePersisted = hooks.notify<[points.Recorded]>('session.message_persisted')
    this.inputPreSubmit = hooks.pipeline<points.Input, [SessionInfo]>('input.pre_submit', decide)
    this.promptPostAssemble = hooks.pipeline<points.AssembledPrompt, [SessionInfo]>('prompt.post_assemble', decide)
    this.eventRecording = hooks.notify<[points.Recorded]>('event.pre_record')
    this.eventRecorded = hooks.notify<[points.Recorded]>('event.post_record')
    this.used = hooks.notify<[string, SessionUse]>('sessions.used')
    this.agentPreStart = hooks.pipeline<points.AgentCommandLine, [SessionInfo]>('agent.pre_start', decide)
    this.agentSpawned = hooks.notify<[SessionInfo, number]>('agent.spawned')
    this.agentCrashed = hooks.notify<[SessionInfo]>('agent.crashed')
    this.agentStopped = hooks.notify<[SessionInfo]>('agent.stopped')
    this.healthCheckFailed = hooks.notify<[SessionInfo, number, boolean]>('sessions.health.check_failed')
    this.turnStart = hooks.notify<[points.Recorded]>('turn.start')
    this.turnEnd = hooks.notify<[points.Recorded]>('turn.end')
    this.messageStart = hooks.notify<[points.Recorded]>('message.start')
    this.messageDelta = hooks.notify<[points.Recorded]>('message.delta')
    this.messageEnd = hooks.notify<[points.Recorded]>('message.end')
    this.toolPreCall = hooks.pipeline<points.ClientCall, [SessionInfo]>('tool.pre_call', decide)
    this.toolPostCall = hooks.notify<[points.Recorded]>('tool.post_call')
    this.toolPostError = hooks.notify<[points.Recorded]>('tool.post_error')
    this.permissionResolved = hooks.notify<[points.Recorded]>('permission.resolved')
    this.permissionDenied = hooks.notify<[points.Recorded]>('permission.denied')
    this.contextCompacted = hooks.notify<[points.Recorded]>('context.post_compact')
    this.worktreePreCreate = hooks.pipeline<points.WorktreeWish, [SessionInfo]>('worktree.pre_create', decide)
    this.worktreeCreated = hooks.notify<[points.WorktreeTold, SessionInfo]>('worktree.created')
    this.worktreeAdopted = hooks.notify<[points.WorktreeTold, SessionInfo]>('worktree.adopted')
    this.worktreePreRemove = hooks.pipeline<points.WorktreeTold, [SessionInfo]>('worktree.pre_remove', decide)
    this.worktreeRemoved = hooks.notify<[points.WorktreeTold, SessionInfo]>('worktree.removed')
  }
}
