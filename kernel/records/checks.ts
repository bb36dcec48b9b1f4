import * as v from 'valibot'
import type { Actor } from '../contract/actor.js'
import { Fault, KernelErrors, messageOf } from '../contract/errors.js'
import { KIND_NAME, type Kind, type RecordScope } from '../contract/kind.js'
import type { RecordWrite, StoredRecord } from '../contract/record.js'
import { issueText } from '../issue-text.js'
import { canonicalJson } from '../kit/canonical.js'
import { checkSource, type Way } from './authority.js'

/** Largest spec, in bytes, of a kind without a codec and of every write that does not come from a service. */
const RAW_LIMIT = 256 * 1024
// biome-ignore lint/suspicious/noControlCharactersInRegex: they are what is refused
const RECORD_ID = /^[^/\\\u0000-\u001f\u007f]{1,256}$/

/** Refuses malformed kind names and ids. */
export function checkKey(kind: string, id: string): void {
  if (!KIND_NAME.test(kind)) throw KernelErrors.invalid_kind(`${JSON.stringify(kind.slice(0, 80))} is not a kind name`)
  if (!RECORD_ID.test(id)) throw KernelErrors.invalid_id()
}

export const nameOf = (kind: string | Kind) => (typeof kind === 'string' ? kind : kind.name)

export function checkScope(scope: RecordScope): RecordScope {
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
 * The spec as the codec of its kind decodes it. Throws `invalid_spec`, also when the codec itself fails: what cannot be judged
 * is not let through, and a broken codec hurts its own records only.
 */
export function decodeSpec(kind: Kind, record: Pick<StoredRecord, 'id' | 'scope' | 'spec'>): unknown {
  const { id, scope } = record
  try {
    const decoded = v.safeParse(kind.spec, record.spec)
    if (!decoded.success) throw specFault(kind.name, decoded.issues)
    const wrong = kind.check?.({ id, scope, spec: decoded.output })
    if (wrong) throw KernelErrors.invalid_spec(`the spec of ${kind.name} ${id} is not valid: ${wrong}`)
    return decoded.output
  } catch (error) {
    if (error instanceof Fault) throw error
    throw KernelErrors.invalid_spec(`the codec of ${kind.name} fails for ${id}: ${messageOf(error)}`, { cause: error })
  }
}

/** Canonical JSON of a spec, decoded by the codec of its kind where it has one. Throws `invalid_spec`, `payload_too_large`. */
export function encode(kind: Kind | undefined, name: string, write: RecordWrite, scope: RecordScope, way: Way): string {
  if (write.spec === undefined) throw KernelErrors.invalid_spec('the record has no spec')
  const spec = kind ? decodeSpec(kind, { id: write.id, scope, spec: write.spec }) : write.spec
  let text: string
  let bytes: number
  try {
    text = canonicalJson(spec)
    bytes = Buffer.byteLength(text)
  } catch {
    throw KernelErrors.invalid_spec('the spec cannot be written as JSON, or is nested too deeply')
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
  return KernelErrors.invalid_spec(`the spec does not match ${name}: ${path}: ${text}`, { details })
}

/** A version that no record can have, before anything is looked up. */
export function checkExpected(expected: number | undefined): void {
  if (expected === undefined || (expected >= 0 && Number.isSafeInteger(expected))) return
  throw KernelErrors.invalid_version('expected_version is 0 for a new record or the current version of it')
}

/** 404 or 409 for presence first, then whose it is, then its version: the order of "The way of a record". */
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
    throw KernelErrors.record_exists(`${kind} ${id} exists at version ${version}; send that as expected_version`, more)
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
