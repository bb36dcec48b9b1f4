/** `svc/plugins/sandboxes`: confinement of sessions. */
import { command as commandLine, placeholder } from '../../../kernel/kit/commands/command-line.js'
import { defineErrors, hookTable, notify, pipeline, type TapsOf, token } from '../../../kernel/plugin.js'
import type { Deniable, SessionInfo } from '../../work/sessions/api.js'

export { spawnConfined } from './spawn-confined.js'

/** The profile that always exists: the network of the host, without variables or secrets. */
export const DEFAULT_PROFILE = 'default'
/** The name for running without a sandbox. */
export const NO_SANDBOX = 'none'

export const SandboxErrors = defineErrors({
  sandbox_unusable: {
    status: 422,
    message: 'the sandbox that this session has to run in cannot be started',
    next: commandLine('doctor', '--only', 'sandboxes'),
  },
  sandbox_profile_not_found: {
    status: 422,
    message: 'there is no such sandbox profile',
    next: commandLine('config get', 'sandboxes'),
  },
  sandbox_not_found: { status: 404, message: 'this session has no sandbox', next: commandLine('sandbox list') },
  sandbox_not_running: {
    status: 409,
    message: 'the sandbox of this session exists only while its agent runs',
    next: commandLine('session prompt', placeholder('id'), placeholder('text')),
  },
  sandbox_crowded: {
    status: 409,
    message: 'too many commands run in this sandbox; wait for one of them',
    next: commandLine('sandbox show', placeholder('session')),
  },
  sandbox_folder_outside: { status: 422, message: 'cwd is no folder of the workspace of this session' },
  sandbox_command_unstarted: { status: 422, message: 'the command could not be started' },
  sandbox_weaker: {
    status: 422,
    message: 'a session started by a sandboxed session needs at least the same sandbox',
    next: 'leave the sandbox out, or name one that is at least as strict',
  },
})

/** A sandbox that is about to be created for a session. */
export interface SandboxWish extends Deniable {
  readonly backend: string
  readonly profile: string
}

/**
 * The hooks of sandboxes, named after the events of hook programs. No files are copied into a sandbox, so there is no sync hook.
 */
export const points = hookTable({
  prepare: pipeline<SandboxWish, [session: SessionInfo]>(
    'sandbox.prepare',
    'Before the sandbox of a session is prepared. A tap may refuse the start of the session.',
    { deadlineMs: 600_000 },
  ),
  ready: notify<[sandbox: SandboxWish, session: SessionInfo]>(
    'sandbox.ready',
    'When the sandbox of a session is ready: all processes of the session run inside it.',
  ),
  stop: notify<[session: SessionInfo]>('sandbox.stop', 'After a sandboxed session stopped.'),
})
export type SandboxPoints = TapsOf<typeof points>

/** Confinement of a program that is not an agent. */
export interface ProgramSandbox {
  readonly profile: string
  /** Default: the network of the profile. */
  readonly network?: 'host' | 'none'
  /** Folders with read and write access; the program starts in the first one. */
  readonly roots: readonly string[]
  /** Folders with read access; the program starts in the first one if it has no other folder. */
  readonly shows?: readonly string[]
  /** The program's own folders with read and write access, within hidden surroundings; they are not guarded. */
  readonly keeps?: readonly string[]
  /** The extension from a catalog that owns the program: its sandbox is mandatory. */
  readonly fromCatalog?: string
}

/** Why a program cannot run; a program from a catalog has no alternative. */
export const unusable = (reason: string | undefined, extension?: string) =>
  extension === undefined
    ? SandboxErrors.sandbox_unusable(reason)
    : unconfined(extension, reason ?? 'sandboxes do not work here')

const unconfined = (extension: string, reason: string) =>
  SandboxErrors.sandbox_unusable(
    `the extension ${extension} comes from a catalog, so its programs run only in a sandbox: ${reason}`,
    {
      next: `install bubblewrap, or let it run with your rights: ${commandLine('config set', 'extensions.trust.unsandboxed', JSON.stringify([extension]))}`,
    },
  )

export interface ProgramCommand {
  readonly argv: readonly string[]
  readonly env: Readonly<Record<string, string>>
}

/** A command enclosed in a sandbox. */
export interface EnclosedProgram {
  readonly argv: string[]
  readonly cwd: string
  readonly env: Record<string, string>
  /** Must be called when the command has ended: moves files aside that would run code outside of the sandbox. */
  ended(): Promise<void>
}

export interface ConfinementApi {
  readonly points: SandboxPoints
  /** Confinement for programs started on behalf of a session, at least as strict as its own sandbox; undefined if it has none. */
  ofSession(id: string): ProgramSandbox | undefined
  /**
   * Encloses a program in a sandbox. `id` is part of the names of files moved aside; only one program may use it at a time.
   * Throws `sandbox_unusable` (422), `sandbox_profile_not_found` (422).
   */
  encloseProgram(id: string, sandbox: ProgramSandbox, command: ProgramCommand): Promise<EnclosedProgram>
}

export const Confinement = token<ConfinementApi>('sandboxes@1')
