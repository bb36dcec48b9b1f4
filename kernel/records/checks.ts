import * as v from 'valibot'
import { Fault, KernelErrors, messageOf } from '../contract/errors.js'
import { KIND_NAME, type Kind, type RecordScope } from '../contract/kind.js'
import type { Actor, Party, RecordWrite, StoredRecord } from '../contract/record.js'
import { canonicalJson } from '../kit/canonical.js'
import { issueText } from '../kit/issue-text.js'
import { clip } from '../kit/text.js'
import { RecordErrors } from './errors.js'

/** The origin of a write: a record route, a service in the process, or the snapshot of a source. */
type Way = 'route' | 'service' | 'snapshot'
export const wayOf = ({ direct, published }: Pick<RecordWrite, 'direct' | 'published'>): Way =>
  published ? 'snapshot' : direct ? 'route' : 'service'

/** Whether an actor's grants and largest scope cover a kind, and the scope if one is given. */
function covers(actor: Actor, kind: string, scope?: RecordScope): boolean {
  const { grantedKinds = [], grantedScopes = [], maxScope } = actor
  const granted = (grants: readonly string[], wanted: string) =>
    grants.length === 0 ? actor.kind !== 'extension' : grants.includes(wanted)
  if (!granted(grantedKinds, kind)) return false
  if (!scope) return true
  if (maxScope?.kind === 'workspace' && (scope.kind !== 'workspace' || scope.id !== maxScope.id)) return false
  return granted(grantedScopes.map(alike), alike(scope.kind))
}

/** `user` and `global` mean the same. */
export const alike = (scope: RecordScope['kind']) => (scope === 'user' ? 'global' : scope)

/**
 * Whether an actor may read a record: within its grants, and an extension only its own records. `conditions` has the same rule for
 * lists.
 */
export function reads(actor: Actor, record: StoredRecord): boolean {
  return (actor.kind !== 'extension' || isFrom(record, actor.source)) && covers(actor, record.kind, record.scope)
}

const isFrom = ({ source }: StoredRecord, party: Party) => source.kind === party.kind && source.id === party.id

/** Refuses an actor that may not write records of this kind in this way. */
function checkActor(actor: Actor, kind: string, way: Way): void {
  if (actor.kind === 'extension' && way !== 'snapshot')
    throw KernelErrors.forbidden('an extension cannot write single records; it publishes a snapshot of all its records')
  if (!covers(actor, kind)) throw RecordErrors.not_granted(`${actor.id} has no grant for records of kind ${kind}`)
}

function checkGrant(actor: Actor, kind: string, scope: RecordScope): void {
  if (covers(actor, kind, scope)) return
  const where = scope.id === undefined ? scope.kind : `${scope.kind} ${scope.id}`
  const granted = actor.maxScope?.id ?? ((actor.grantedScopes ?? []).join(', ') || 'none')
  throw RecordErrors.not_granted(
    `${actor.id} has no grant for records of kind ${kind} in scope ${where}; granted: ${granted}`,
  )
}

/** Only the source of a stored record may change or remove it, within the actor's grants. */
export function checkSource(actor: Actor, before: StoredRecord): void {
  if (!isFrom(before, actor.source)) {
    throw RecordErrors.source_mismatch(
      `this record comes from ${before.source.kind}/${before.source.id} and only that source can change it`,
    )
  }
  checkGrant(actor, before.kind, before.scope)
}

/** The owner of the record, set anew by every write. */
function ownerOf(actor: Actor, write: RecordWrite): Party {
  if (write.owner && actor.kind !== 'daemon')
    throw KernelErrors.forbidden('only the daemon and its plugins may set the owner of a record')
  return write.owner ?? (actor.kind === 'extension' ? actor.source : actor.owner)
}

/** Largest spec, in bytes, of a kind without a codec, and of every write that is not by a service. */
const RAW_LIMIT = 256 * 1024
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
const RECORD_ID = /^[^/\\\u0000-\u001f\u007f]{1,256}$/

/** Refuses malformed kind names and ids. */
function checkKey(kind: string, id: string): void {
  if (!KIND_NAME.test(kind)) throw KernelErrors.invalid_kind(`${JSON.stringify(clip(kind, 80))} is not a kind name`)
  if (!RECORD_ID.test(id)) throw RecordErrors.invalid_id()
}

export const nameOf = (kind: string | Kind) => (typeof kind === 'string' ? kind : kind.name)

function checkScope(scope: RecordScope): RecordScope {
  if (scope.kind === 'workspace') {
    if (!scope.id) throw KernelErrors.invalid_scope('a workspace scope needs the workspace id in scope.id')
    return { kind: 'workspace', id: scope.id }
  }
  if (scope.kind !== 'user' && scope.kind !== 'global')
    throw KernelErrors.invalid_scope('scope.kind is user, global or workspace')
  if (scope.id) throw KernelErrors.invalid_scope(`a ${scope.kind} scope has no id`)
  return { kind: scope.kind }
}

/**
 * The spec, decoded by the codec of its kind. Throws `invalid_spec`, also when the codec itself fails: an unchecked spec is not
 * accepted, and a broken codec affects only its own records.
 */
export function decodeSpec(kind: Kind, record: Pick<StoredRecord, 'id' | 'scope' | 'spec'>): unknown {
  const { id, scope } = record
  try {
    const decoded = v.safeParse(kind.spec, record.spec)
    if (!decoded.success) throw specFault(kind.name, decoded.issues)
    const wrong = kind.check?.({ id, scope, spec: decoded.output })
    if (wrong) throw RecordErrors.invalid_spec(`the spec of ${kind.name} ${id} is not valid: ${wrong}`)
    return decoded.output
  } catch (error) {
    if (error instanceof Fault) throw error
    throw RecordErrors.invalid_spec(`the codec of ${kind.name} fails for ${id}: ${messageOf(error)}`, { cause: error })
  }
}

/** Canonical JSON of a spec, decoded by the codec of its kind if there is one. Throws `invalid_spec`, `payload_too_large`. */
function encode(kind: Kind | undefined, name: string, write: RecordWrite, scope: RecordScope, way: Way): string {
  if (write.spec === undefined) throw RecordErrors.invalid_spec('the record has no spec')
  const spec = kind ? decodeSpec(kind, { id: write.id, scope, spec: write.spec }) : write.spec
  let text: string
  let bytes: number
  try {
    text = canonicalJson(spec)
    bytes = Buffer.byteLength(text)
  } catch {
    throw RecordErrors.invalid_spec('the spec cannot be written as JSON, or is nested too deeply')
  }
  const limit = Math.min(kind?.maxBytes ?? RAW_LIMIT, way === 'service' ? Number.POSITIVE_INFINITY : RAW_LIMIT)
  if (bytes > limit)
    throw KernelErrors.payload_too_large(`the spec has ${bytes} bytes, at most ${limit} are allowed for ${name}`)
  return text
}

function specFault(name: string, issues: readonly v.BaseIssue<unknown>[]): Fault {
  const details: Record<string, string> = {}
  for (const issue of issues.slice(0, 20)) details[v.getDotPath(issue) ?? 'spec'] = issueText(issue)
  const [[path, text] = ['spec', 'invalid']] = Object.entries(details)
  return RecordErrors.invalid_spec(`the spec does not match ${name}: ${path}: ${text}`, { details })
}

/** Refuses an impossible version before any lookup. */
export function checkExpected(expected: number | undefined): void {
  if (expected === undefined || (expected >= 0 && Number.isSafeInteger(expected))) return
  throw KernelErrors.invalid_version('expected_version must be 0 for a new record, else its current version')
}

/** A snapshot may change only records of its own source. */
export function checkTaken(actor: Actor, before: StoredRecord | undefined): void {
  if (before && !isFrom(before, actor.source))
    throw RecordErrors.record_exists(`${before.kind} ${before.id} exists and comes from another source`)
}

/** Checks presence (404 or 409), then the source, then the version: the order of the picture in README.md. */
export function checkVersion(
  actor: Actor,
  kind: string,
  id: string,
  before: StoredRecord | undefined,
  expected: number | undefined,
): void {
  if (!before) {
    if (expected) throw KernelErrors.record_not_found(`there is no ${kind} record ${id} at version ${expected}`)
    return
  }
  const { version } = before
  const more = { next: `svc resource get ${kind} ${id}` }
  if (expected === 0)
    throw RecordErrors.record_exists(`${kind} ${id} exists at version ${version}; send that as expected_version`, more)
  checkSource(actor, before)
  if (expected === undefined || expected === version) return
  const text = `${kind} ${id} is at version ${version}, not ${expected}; read it again and repeat`
  throw KernelErrors.version_conflict(text, more)
}

export const same = (before: StoredRecord, scope: RecordScope, owner: StoredRecord['owner'], spec: string) =>
  before.scope.kind === scope.kind &&
  before.scope.id === scope.id &&
  before.owner.kind === owner.kind &&
  before.owner.id === owner.id &&
  canonicalJson(before.spec) === spec

/** A write that has passed all checks that do not read the database. */
export type ReadyWrite = ReturnType<typeof readyWrite>

type Kinds = ReadonlyMap<string, Kind>

export function checkWriter(kinds: Kinds, actor: Actor, kind: string, id: string, way: Way): void {
  checkKey(kind, id)
  checkActor(actor, kind, way)
  if (way !== 'service' && kinds.get(kind)?.writers === 'owner') {
    throw KernelErrors.owner_only(
      `records of kind ${kind} are written only by the service that owns them; here they are read-only`,
    )
  }
}

export function readyWrite(kinds: Kinds, actor: Actor, write: RecordWrite) {
  const way = wayOf(write)
  const kind = nameOf(write.kind)
  checkWriter(kinds, actor, kind, write.id, way)
  const owner = ownerOf(actor, write)
  checkExpected(write.expectedVersion)
  const scope = checkScope(write.scope)
  const spec = encode(kinds.get(kind), kind, write, scope, way)
  checkGrant(actor, kind, scope)
  return { kind, id: write.id, scope, owner, spec }
}
