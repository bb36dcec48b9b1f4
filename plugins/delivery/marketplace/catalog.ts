import { createHash } from 'node:crypto'
import { mkdir } from 'node:fs/promises'
import path from 'node:path'
import { command } from '../../../kernel/kit/commands/command-line.js'
import { readRegularFile } from '../../../kernel/kit/read-file.js'
import { shown } from '../../../kernel/kit/text.js'
import { messageOf } from '../../../kernel/plugin.js'
import type { FeedKind, MarketplaceKind, RefreshReply } from '../../../schemas/marketplace.js'
import { writeWhole } from '../../desk/workspaces/api.js'
import { DownloadError } from '../extensions/api.js'
import { MarketplaceErrors } from './api.js'
import { type Entry, FEED_LIMITS, type Feed, parseFeed } from './feed.js'
import { type Base, fetchFrom } from './fetch.js'
import type { K } from './needs.js'
import { SearchIndex } from './search-index.js'

/** Milliseconds for which a feed counts as fresh. */
const FRESH_MS = 60 * 60_000
/** Milliseconds after a failure before a read tries again; an explicit refresh always tries. */
const RETRY_MS = 60_000

export const FEEDS: Readonly<Record<FeedKind, string>> = {
  mcp: 'mcp.json',
  extension: 'extensions.json',
  skill: 'skills.json',
}

/** The last read state of a feed. */
export interface Copy {
  readonly feed: Feed
  readonly index: SearchIndex
  readonly digest: string
  readonly fetchedAt: number
}

/** Result of a read: the copy, if any, and the reason if it is not current. */
export interface Shelf {
  readonly copy: Copy | undefined
  readonly stale: boolean
  readonly error?: string
  readonly errorClass?: string
}

type Outcome = RefreshReply['kinds'][number]

/**
 * One feed of one catalog: fetched on a read if it is an hour old, and cached on disk for times when the catalog is
 * unreachable.
 */
export class Catalog {
  #copy: Copy | undefined
  #failure: { readonly at: number; readonly error: string; readonly errorClass: string } | undefined
  #running: Promise<Outcome> | undefined
  #restored: Promise<void> | undefined

  constructor(
    private readonly kernel: K,
    readonly kind: FeedKind,
    private readonly base: Base,
    private readonly timeoutMs: () => number,
  ) {}

  /** Whether the last fetch succeeded. */
  get isServed(): boolean {
    return this.#copy !== undefined && this.#failure === undefined
  }

  /** Whether the feed was missing at the last fetch, and never existed before. */
  get isAbsent(): boolean {
    return this.#copy === undefined && this.#failure?.errorClass === 'not_found'
  }

  async read(): Promise<Shelf> {
    await this.#restore()
    const now = this.kernel.clock.now()
    const isFresh = this.#copy !== undefined && now - this.#copy.fetchedAt < FRESH_MS && now >= this.#copy.fetchedAt
    const mayTry = this.#failure === undefined || now - this.#failure.at >= RETRY_MS || now < this.#failure.at
    if (!isFresh && mayTry) await this.refresh()
    const { error, errorClass } = this.#failure ?? {}
    return {
      copy: this.#copy,
      stale: this.#copy !== undefined && this.#failure !== undefined,
      ...(error !== undefined && { error }),
      ...(errorClass !== undefined && { errorClass }),
    }
  }

  /** Fetches the feed now; concurrent calls share the result. Never rejects. */
  refresh(): Promise<Outcome> {
    this.#running ??= this.#refresh().finally(() => {
      this.#running = undefined
    })
    return this.#running
  }

  async #refresh(): Promise<Outcome> {
    await this.#restore()
    const { kind } = this
    const { clock } = this.kernel
    try {
      const options = { clock, maxBytes: FEED_LIMITS.bytes, timeoutMs: this.timeoutMs() }
      const text = (await fetchFrom(this.base, FEEDS[kind], options)).toString('utf8')
      const before = this.#copy?.digest
      const copy = this.#take(text, clock.now())
      this.#failure = undefined
      await this.#store(text, copy.fetchedAt)
      const { dropped, entries, firstProblem } = copy.feed
      return {
        kind,
        outcome: dropped > 0 ? 'partial' : before === copy.digest ? 'unchanged' : 'refreshed',
        entry_count: entries.length,
        stale: false,
        ...(dropped > 0 && { error_class: 'invalid_entries', error: `${dropped} entries left out; ${firstProblem}` }),
      }
    } catch (error) {
      const errorClass = error instanceof DownloadError ? error.problem : 'malformed'
      this.#failure = { at: clock.now(), error: `${FEEDS[kind]}: ${messageOf(error)}`, errorClass }
      this.kernel.log.warn(`the feed ${FEEDS[kind]} of the catalog was not read: ${messageOf(error)}`)
      return {
        kind,
        outcome: 'failed',
        entry_count: this.#copy?.feed.entries.length ?? 0,
        stale: this.#copy !== undefined,
        error_class: errorClass,
        error: this.#failure.error,
      }
    }
  }

  #take(text: string, fetchedAt: number): Copy {
    const digest = createHash('sha256').update(text).digest('hex')
    const before = this.#copy
    if (before?.digest === digest) {
      this.#copy = { ...before, fetchedAt }
    } else {
      const feed = parseFeed(text, this.kind)
      this.#copy = { feed, index: new SearchIndex(feed.entries), digest, fetchedAt }
    }
    return this.#copy
  }

  get #file(): string {
    const where = this.base.kind === 'folder' ? this.base.folder : this.base.url.href
    const catalog = createHash('sha256').update(where).digest('hex').slice(0, 16)
    return this.kernel.home.path('cache', 'marketplace', `${catalog}-${this.kind}.json`)
  }

  /** Reads the cached copy of an earlier daemon. A damaged one is ignored. */
  #restore(): Promise<void> {
    this.#restored ??= (async () => {
      try {
        const bytes = await readRegularFile(this.#file, { maxBytes: FEED_LIMITS.bytes + 1024, links: 'refuse' })
        if (!bytes) return
        const [head = '', text = ''] = bytes.toString('utf8').split(/\n(.*)/s)
        const fetchedAt = Number(head)
        if (Number.isSafeInteger(fetchedAt)) this.#take(text, fetchedAt)
      } catch (error) {
        this.kernel.log.warn(`the copy of ${FEEDS[this.kind]} is not readable: ${messageOf(error)}`)
      }
    })()
    return this.#restored
  }

  async #store(text: string, fetchedAt: number): Promise<void> {
    try {
      await mkdir(path.dirname(this.#file), { recursive: true, mode: 0o700 })
      await writeWhole(this.#file, `${fetchedAt}\n${text}`, {
        how: 'replace',
        unique: this.kernel.ids.hex(6),
        mode: 0o600,
      })
    } catch (error) {
      // The copy in memory serves; only the next daemon starts without one.
      this.kernel.log.warn(`the copy of ${FEEDS[this.kind]} was not kept: ${messageOf(error)}`)
    }
  }
}

/** The entry with that id, or else that name. */
export function entryOf({ feed }: Copy, slug: string): Entry | undefined {
  return feed.entries.find(({ id }) => id === slug) ?? feed.entries.find(({ name }) => name === slug)
}

/** The fault for an unknown id. */
export const noEntry = (kind: MarketplaceKind, id: string) =>
  MarketplaceErrors.marketplace_entry_not_found(`the catalog has no ${kind} ${shown(id)}`, {
    next: command('marketplace list', kind),
  })

/** Why an id matches no entry. */
export function absent({ feed }: Copy, kind: MarketplaceKind, id: string) {
  const all = feed.ambiguous.get(id) ?? []
  if (all.length === 0) return noEntry(kind, id)
  return MarketplaceErrors.marketplace_entry_ambiguous(
    `the ${kind}s ${all.join(' and ')} of the catalog have the same name, so neither can be installed`,
  )
}
