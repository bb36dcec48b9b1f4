import * as v from 'valibot'
import { parseJson } from '../../../kernel/kit/text.js'
import { type FeedKind, McpSection } from '../../../schemas/marketplace.js'
import { isNewer } from '../extensions/api.js'

/** What a feed may weigh; beyond it nothing of it is taken. */
export const FEED_LIMITS = { bytes: 16 * 1024 * 1024, entries: 50_000 } as const

const line = (max: number) => v.pipe(v.string(), v.minLength(1), v.maxLength(max))
const maybe = (max: number) => v.optional(v.pipe(v.string(), v.maxLength(max)))
/** Where a file lies: relative to the feed, or an address. Text that is neither would be a fault of whoever reads it. */
const place = v.pipe(
  line(2048),
  v.check(text => URL.canParse(text, 'https://catalog.invalid/'), 'a path relative to the feed, or an address'),
)
const date = v.optional(v.pipe(v.string(), v.isoTimestamp()))

const Signature = v.optional(v.pipe(v.string(), v.regex(/^[A-Za-z0-9+/]{86}==$/, '64 bytes in base64')))

/** One version of a skill that can be installed. */
const SkillVersion = v.object({
  version: line(64),
  /** Of a `.tar.gz`: relative to the feed, or https. */
  archive: place,
  sha256: v.optional(v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/i, '64 hex digits'))),
  /** Ed25519 in base64 over {@link signedText}. */
  signature: Signature,
})
export type SkillVersion = v.InferOutput<typeof SkillVersion>

/** An entry of any feed; what belongs to one kind is optional here and judged where it is used. */
const Entry = v.object({
  /** Names it in URLs, and everywhere where a slug is asked for. */
  id: v.pipe(v.string(), v.regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/, 'letters, digits, . _ and -, at most 128')),
  name: line(128),
  description: line(4096),
  author: maybe(256),
  version: maybe(64),
  tier: maybe(64),
  downloads: v.optional(v.pipe(v.number(), v.integer(), v.minValue(0))),
  published_at: date,
  updated_at: date,
  /** Shown before anybody searches. */
  curated: v.optional(v.boolean(), false),
  tags: v.optional(v.pipe(v.array(line(64)), v.maxLength(32)), []),
  display_name: maybe(256),
  license: maybe(128),
  readme: maybe(64 * 1024),
  repository: maybe(2048),
  /** Of extensions. */
  artifact_url: v.optional(place),
  digest_sha256: v.optional(v.pipe(v.string(), v.regex(/^[0-9a-f]{64}$/i, '64 hex digits'))),
  /** Ed25519 in base64 over the text of `signedExtension`. */
  signature: Signature,
  /** Of MCP servers. */
  mcp: v.optional(McpSection),
  /** Of skills. */
  versions: v.optional(v.pipe(v.array(SkillVersion), v.maxLength(100)), []),
  /** Of the author: 32 bytes of Ed25519 in base64. */
  public_key: v.optional(v.pipe(v.string(), v.regex(/^[A-Za-z0-9+/]{43}=$/, '32 bytes in base64'))),
})
export type Entry = v.InferOutput<typeof Entry>

/** The latest version of a skill, in whatever order its catalog has them; of versions that cannot be compared the first. */
export const newestOf = ({ versions }: Entry): SkillVersion | undefined =>
  versions.reduce<SkillVersion | undefined>(
    (best, one) => (best === undefined || isNewer(one.version, best.version) ? one : best),
    undefined,
  )

export interface Feed {
  readonly entries: readonly Entry[]
  /** Entries that are not valid, those with the id of an earlier one, and those that share a name. */
  readonly dropped: number
  /** Ids of entries that share a name, with the ids of all that do: nobody can tell which one is meant. */
  readonly ambiguous: ReadonlyMap<string, readonly string[]>
  /** What is wrong with the first of them. */
  readonly firstProblem?: string
}

/** Kinds whose things are known by their name once they are installed. */
const BY_NAME: readonly FeedKind[] = ['extension', 'skill']

/** A feed; entries that are not valid are left out. Throws an Error that says why it is none. */
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

/** What the author of a skill signs: no other skill, version or archive has the same. */
export const signedText = (slug: string, version: string, sha256: string) =>
  `svc-skill-v1\n${slug}\n${version}\n${sha256.toLowerCase()}\n`
