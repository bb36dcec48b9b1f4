/** `svc/plugins/sandboxes`: how sessions are confined. */
import { defineErrors, type Hook, token } from '../../kernel/plugin.js'
import type { Deniable, SessionInfo } from '../sessions/api.js'

/** The profile that is always there: the network of the host, and nothing of its own. */
export const DEFAULT_PROFILE = 'default'
/** The name that stands for no sandbox. */
export const NO_SANDBOX = 'none'

export const SandboxErrors = defineErrors({
  sandbox_unusable: {
    status: 422,
    message: 'the sandbox that this session has to run in cannot be started',
    next: 'svc doctor --only sandboxes',
  },
  sandbox_profile_not_found: {
    status: 422,
    message: 'there is no such sandbox profile',
    next: 'svc config get sandboxes',
  },
  sandbox_weaker: {
    status: 422,
    message: 'what a sandboxed session starts runs in no weaker sandbox',
    next: 'leave the sandbox out, or name one that is at least as strict',
  },
})

/** A sandbox that is about to be put around a session. */
export interface SandboxWish extends Deniable {
  readonly backend: string
  readonly profile: string
}

/** Points at which others hear of sandboxes, named after the events that programs hook. Nothing is copied into one: it has no sync. */
export interface SandboxPoints {
  /** `sandbox.prepare`: the start of the session may be refused. */
  readonly prepare: Hook<
    (wish: SandboxWish, session: SessionInfo) => SandboxWish | undefined | Promise<SandboxWish | undefined>
  >
  /** `sandbox.ready`: what the session starts runs inside. */
  readonly ready: Hook<(sandbox: SandboxWish, session: SessionInfo) => unknown>
  /** `sandbox.stop`: a sandboxed session has stopped. */
  readonly stop: Hook<(session: SessionInfo) => unknown>
}

export const Confinement = token<{ readonly points: SandboxPoints }>('sandboxes@1')
