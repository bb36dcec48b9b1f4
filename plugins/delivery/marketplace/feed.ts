import * as v from 'valibot'
import { parseJson } from '../../../kernel/kit/text.js'
import { type FeedKind, McpSection } from '../../../schemas/marketplace.js'
import { isNewer } from '../extensions/api.js'

/** Limits of a feed; a larger one is rejected as a whole. */
export const FEED_LIMITS = { bytes: 16 * 1024 * 1024, entries: 50_000 } as const

const line = (max: number) => v.pipe(v.string(), v.minLength(1), v.maxLength(max))
const maybe = (max: number) => v.optional(v.pipe(v.string(), v.maxLength(max)))
/** Place of a file: relative to the feed, or an address. Other text would fail later, when the URL is resolved. */
const location = v.pipe(
  line(2048),
  v.check(text => URL.canParse(text, 'https://catalog.invalid/'), 'a path relative to the feed, or an address'),
)
const date = v.optional(v.pipe(v.string(), v.isoTimestamp()))

const Signature = v.optional(v.pipe(v.string(), v.regex(/^[A-Za-z0-9+/]{86}==$/, '64 bytes in base64')))

/** An installable version of a skill. */
const SkillVersion = v.object({
  version: line(64),
  /** Place of a `.tar.gz`: relative to the feed, or https. */
  archive: location,
  sha256: v.optional(v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/i, '64 hex digits'))),
  /** Ed25519 in base64 over {@link signedText}. */
  signature: Signature,
})
export type SkillVersion = v.InferOutput<typeof SkillVersion>

/** An entry of any feed; members of single kinds are optional here and checked where they are used. */
const Entry = v.object({
  /** Identifies it in URLs and as a slug. */
  id: v.pipe(v.string(), v.regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/, 'letters, digits, . _ and -, at most 128')),
  name: line(128),
  description: line(4096),
  author: maybe(256),
  version: maybe(64),
  tier: maybe(64),
  downloads: v.optional(v.pipe(v.number(), v.integer(), v.minValue(0))),
  published_at: date,
  updated_at: date,
  /** Shown before a search. */
  curated: v.optional(v.boolean(), false),
  tags: v.optional(v.pipe(v.array(line(64)), v.maxLength(32)), []),
  display_name: maybe(256),
  license: maybe(128),
  readme: maybe(64 * 1024),
  repository: maybe(2048),
  /** Only in entries of extensions. */
  artifact_url: v.optional(location),
  digest_sha256: v.optional(v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/i, '64 hex digits'))),
  /** Ed25519 in base64 over the text of `signedExtension`. */
  signature: Signature,
  /** Only in entries of MCP servers. */
  mcp: v.optional(McpSection),
  /** Only in entries of skills. */
  versions: v.optional(v.pipe(v.array(SkillVersion), v.maxLength(100)), []),
  /** Public key of the author: 32 bytes of Ed25519 in base64. */
  public_key: v.optional(v.pipe(v.string(), v.regex(/^[A-Za-z0-9+/]{43}=$/, '32 bytes in base64'))),
})
export type Entry = v.InferOutput<typeof Entry>

/** The latest version of a skill, whatever the order in the catalog; the first one of versions that are not comparable. */
export const newestOf = ({ versions }: Entry): SkillVersion | undefined =>
  versions.reduce<SkillVersion | undefined>(
    (best, one) => (best === undefined || isNewer(one.version, best.version) ? one : best),
    undefined,
  )

export interface Feed {
  readonly entries: readonly Entry[]
  /** Number of invalid entries, of duplicate ids, and of entries that share a name. */
  readonly dropped: number
  /** Ids of entries that share a name, each with all ids of that name: a name alone is ambiguous. */
  readonly ambiguous: ReadonlyMap<string, readonly string[]>
  /** Problem of the first dropped entry. */
  readonly firstProblem?: string
}

/** Kinds whose installed items are identified by name. */
const BY_NAME: readonly FeedKind[] = ['extension', 'skill']

/** Parses a feed and leaves invalid entries out. @throws Error if it is not a feed */
export function parseFeed(text: string, kind: FeedKind): Feed {
  const whole = parseJson(text)
  const entries = (whole as { entries?: unknown } | null)?.entries
  if (!Array.isArray(entries)) throw new Error('it has no list `entries`')
  if (entries.length > FEED_LIMITS.entries) throw new Error(`it has more than ${FEED_LIMITS.entries} entries`)
  const byId = new Map<string, Entry>()
  let firstProblem: string | undefined
  for (const [at, one] of entries.entries()) {
    const decoded = v.safeParse(Entry, one)
    if (!decoded.success) firstProblem ??= `entry ${at}: ${v.getDotPath(decoded.issues[0]) ?? 'entry'}`
    else if (byId.has(decoded.output.id)) firstProblem ??= `entry ${at}: the id ${decoded.output.id} is there twice`
    else byId.set(decoded.output.id, decoded.output)
  }
  const ambiguous = BY_NAME.includes(kind) ? ambiguousIn([...byId.values()]) : new Map<string, readonly string[]>()
  for (const [id, all] of ambiguous) {
    firstProblem ??= `${all.join(' and ')} have the name ${byId.get(id)?.name}`
    byId.delete(id)
  }
  const dropped = entries.length - byId.size
  return { entries: [...byId.values()], dropped, ambiguous, ...(firstProblem !== undefined && { firstProblem }) }
}

function ambiguousIn(entries: readonly Entry[]): Map<string, readonly string[]> {
  const byName = new Map<string, string[]>()
  for (const { id, name } of entries) {
    const key = name.normalize('NFKC').trim().toLowerCase()
    byName.set(key, [...(byName.get(key) ?? []), id])
  }
  const shared = [...byName.values()].filter(ids => ids.length > 1)
  return new Map(shared.flatMap(ids => ids.map(id => [id, ids] as const)))
}

/** The text that the author of a skill signs: unique to a skill, version and archive. */
export const signedText = (slug: string, version: string, sha256: string) =>
  `svc-skill-v1\n${slug}\n${version}\n${sha256.toLowerCase()}\n`
