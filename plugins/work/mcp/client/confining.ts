import { createHash } from 'node:crypto'
import { canonicalJson } from '../../../../kernel/kit/canonical.js'
import { type ConfinementApi, DEFAULT_PROFILE, type ProgramSandbox } from '../../../access/sandboxes/api.js'
import { type ExtensionsApi, type Owner, ownerOf } from '../../../delivery/extensions/api.js'
import type { Workspace } from '../../../desk/workspaces/api.js'
import type { SessionsApi } from '../../sessions/api.js'
import type { ToolPlace } from '../../tools/api.js'
import { NO_SANDBOX, type Server, type Source } from '../sources/declaration.js'

/** How the program of a server is confined. */
export type Confined = ProgramSandbox

/** One process runs for all whose server has the same declaration and is confined in the same way. */
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
 * What the person set up for everybody, and whatever is installed, runs as its declaration says. All else comes with the files
 * that agents work on, or with an agent or a skill.
 */
const isOfPerson = ({ kind, scope }: Source) =>
  scope === 'global' && (kind.startsWith('global-') || kind === 'provider' || kind === 'extension')

/** The sandbox that a server has whoever uses it: the one that its declaration names, and one in any case where it came from a catalog. */
export function ownSandbox(
  { declaration: { command, sandbox } }: Pick<Server, 'declaration'>,
  owner: Owner | undefined,
): string | undefined {
  if (command === undefined) return undefined
  const named = sandbox === NO_SANDBOX ? undefined : sandbox
  return named ?? (owner?.confined ? DEFAULT_PROFILE : undefined)
}

/**
 * Says how a server is started for a caller: in the sandbox that its declaration names, and never in a weaker one than that of a
 * sandboxed session to which the server belongs. Returns undefined for a server that needs no sandbox.
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
