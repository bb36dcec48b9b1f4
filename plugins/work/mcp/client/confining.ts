import { createHash } from 'node:crypto'
import { canonicalJson } from '../../../../kernel/kit/canonical.js'
import { type ConfinementApi, DEFAULT_PROFILE, type ProgramSandbox } from '../../../access/sandboxes/api.js'
import { type ExtensionsApi, type Owner, ownerOf } from '../../../delivery/extensions/api.js'
import type { Workspace } from '../../../desk/workspaces/api.js'
import type { SessionsApi } from '../../sessions/api.js'
import type { ToolPlace } from '../../tools/api.js'
import { NO_SANDBOX, type Server, type Source } from '../sources/declaration.js'

/** Sandbox of a server's program. */
export type Confined = ProgramSandbox

/** Key of a process: callers share it if the declaration and the sandbox are equal. */
export const confinedKey = (serverKey: string, confined: Confined | undefined): string =>
  confined
    ? createHash('sha256')
        .update(canonicalJson([serverKey, confined.profile, confined.network ?? '', confined.roots]))
        .digest('hex')
    : serverKey

export interface ConfiningNeeds {
  readonly sandboxes: { readonly current?: ConfinementApi | undefined }
  readonly extensions: { readonly current?: ExtensionsApi | undefined }
  readonly sessions: Pick<SessionsApi, 'get'>
}

/**
 * Servers of a person's own configuration and of installed packages run as declared. All others come from files that
 * agents work on, or from an agent or skill.
 */
const isOfPerson = ({ kind, scope }: Source) =>
  scope === 'global' && (kind.startsWith('global-') || kind === 'provider' || kind === 'extension')

/** The sandbox of a server for every caller: the declared one; a server from a catalog always has one. */
export function ownSandbox(
  { declaration: { command, sandbox } }: Pick<Server, 'declaration'>,
  owner: Owner | undefined,
): string | undefined {
  if (command === undefined) return undefined
  const named = sandbox === NO_SANDBOX ? undefined : sandbox
  return named ?? (owner?.confined ? DEFAULT_PROFILE : undefined)
}

/**
 * Sandbox for a caller: the declared one, and never a weaker one than that of a sandboxed session that the server
 * belongs to. Returns undefined for a server without a sandbox.
 */
export function confinedFor(
  { sandboxes, sessions, extensions }: ConfiningNeeds,
  server: Server,
  { sessionId = '' }: ToolPlace,
  workspace: Workspace | undefined,
): Confined | undefined {
  if (server.declaration.command === undefined) return undefined
  const owner = ownerOf(extensions.current, server.source.extension)
  const declared = ownSandbox(server, owner)
  const confinement = isOfPerson(server.source) ? undefined : sessions.get(sessionId)?.confinement
  const isSandboxed = confinement?.kind === 'sandbox'
  const own = isSandboxed ? (sandboxes.current?.ofSession(sessionId) ?? { ...confinement, roots: [] }) : undefined
  const profile = declared ?? own?.profile
  if (profile === undefined) return undefined
  const roots = own?.roots ?? (workspace ? [workspace.rootDir, ...workspace.addDirs] : [])
  const shows = owner?.root === undefined ? {} : { shows: [owner.root] }
  const from = owner?.confined ? { fromCatalog: owner.name } : {}
  return { profile, roots, ...shows, ...from, ...(own?.network ? { network: own.network } : {}) }
}
