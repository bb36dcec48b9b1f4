import * as v from 'valibot'
import { Paging } from '../../../kernel/kit/page.js'
import { shown } from '../../../kernel/kit/text.js'
import { messageOf } from '../../../kernel/plugin.js'
import { durationMs } from '../../../schemas/duration.js'
import {
  FeedKind,
  type MarketplaceDetail,
  type MarketplaceEntry,
  type MarketplaceEntryQuery,
  MarketplaceKind,
  type MarketplaceKindPage,
  type MarketplaceKindQuery,
  type MarketplaceSearchQuery,
  type MarketplaceSearchReply,
  type RefreshReply,
} from '../../../schemas/marketplace.js'
import type { CuratedArchive } from '../extensions/api.js'
import { MarketplaceErrors } from './api.js'
import { bundleDetail, bundleEntries } from './bundles.js'
import { absent, Catalog, type Copy, noEntry } from './catalog.js'
import type { Entry } from './feed.js'
import { type Base, baseOf, fetchFrom } from './fetch.js'
import { Installed } from './installed.js'
import { McpInstaller } from './mcp-installer.js'
import type { K } from './needs.js'
import { CatalogTimeout } from './settings.js'
import { AuthorPins, ExtensionAuthors } from './signatures.js'
import { SkillInstaller } from './skill-installer.js'
import { addressOf, detailOf, toWire } from './wire.js'

const DEFAULT_LIMIT = 20

/** The marketplace: the catalog's entries, and the skills installed from it. */
export class MarketplaceService {
  readonly skills: SkillInstaller
  readonly servers: McpInstaller
  readonly #authors: ExtensionAuthors
  readonly #installed: Installed
  readonly #catalogs = new Map<FeedKind, { readonly where: string; readonly catalog: Catalog }>()
  readonly #paging = new Paging({ place: v.number() })

  constructor(private readonly kernel: K) {
    this.#installed = new Installed(kernel)
    this.#authors = new ExtensionAuthors(new AuthorPins(kernel.db))
    this.servers = new McpInstaller(kernel, id => this.#entry('mcp', id))
    this.skills = new SkillInstaller(kernel, {
      skills: () => this.#copyOf('skill'),
      base: () => this.#base(),
      registry: () => this.#value('marketplace.registry') || 'catalog',
      allowsUnverified: () => this.#allowsUnverified(),
      timeoutMs: () => this.#timeoutMs(),
    })
  }

  /** Fetches the feeds now. A missing catalog is not a failure. */
  async refresh(only: FeedKind | undefined): Promise<RefreshReply> {
    const catalogs = (only ? [only] : FeedKind.options).map(kind => ({ kind, catalog: this.#catalog(kind) }))
    const nothing = { entry_count: 0, stale: false }
    const done = await Promise.all(
      catalogs.map(
        async ({ kind, catalog }) =>
          (await catalog?.refresh()) ?? { kind, outcome: 'skipped', ...nothing, error_class: 'not_configured' },
      ),
    )
    // Whether a feed is missing is known only after all were read.
    const kinds = catalogs.map(async ({ kind, catalog }, n) =>
      catalog && (await this.#lacks(catalog)) ? { kind, outcome: 'absent', ...nothing } : (done[n] as (typeof done)[0]),
    )
    return { kinds: await Promise.all(kinds) }
  }

  async search(query: MarketplaceSearchQuery): Promise<MarketplaceSearchReply> {
    const kinds = await Promise.all(MarketplaceKind.options.map(kind => this.page(kind, query)))
    // A page's cursor is valid only for the list of its kind.
    return { query: query.q ?? '', kinds: kinds.map(({ next_cursor: _, ...page }) => page) }
  }

  /** @throws Fault `marketplace_kind_unknown`, `marketplace_query_invalid`, `invalid_cursor` */
  async page(name: string, query: MarketplaceKindQuery): Promise<MarketplaceKindPage> {
    const kind = kindOf(name)
    checkScope(query)
    const { items, ...shelf } = await this.#find(kind, query.q ?? '')
    const of = { query: { kind, q: query.q, scope: query.scope, workspace_id: query.workspace_id } }
    const from = this.#paging.after(of, query.cursor) ?? 0
    const limit = query.limit ?? DEFAULT_LIMIT
    const rows = items.slice(from, from + limit)
    const hasMore = items.length > from + limit
    const wire = await this.#wire(kind, rows)
    return {
      kind,
      items: wire,
      total: items.length,
      ...shelf,
      ...(hasMore && { next_cursor: this.#paging.cursor(of, from + limit) }),
    }
  }

  /** @throws Fault `marketplace_kind_unknown`, `marketplace_entry_not_found`, `marketplace_query_invalid` */
  async detail(name: string, id: string, query: MarketplaceEntryQuery): Promise<MarketplaceDetail> {
    const kind = kindOf(name)
    checkScope(query)
    if (kind === 'bundle') {
      if (query.installed_name !== undefined)
        throw MarketplaceErrors.marketplace_query_invalid(
          'a bundle is not installed by itself: leave out installed_name',
        )
      const detail = await bundleDetail(this.kernel, id)
      if (!detail) throw noEntry(kind, id)
      return detail
    }
    const [entry, wire] = await this.#entry(kind, id, query.installed_name)
    return { entry: wire, ...detailOf(kind, entry, this.#base()) }
  }

  /** Removes an extension's author key that an earlier version pinned here. */
  async forgetExtension(name: string): Promise<void> {
    await this.kernel.db.tx(t => this.#authors.forget(t, name))
  }

  /**
   * The archive of an extension in the catalog.
   * @param authorOf public key that signed the installed extension
   * @throws Fault like {@link detail}, `extension_author_changed`, `extension_signature_invalid`, and `extension_archive_unavailable`
   * when it is read
   */
  async extensionArchive(slug: string, authorOf: (name: string) => string | undefined): Promise<CuratedArchive> {
    const [entry] = await this.#entry('extension', slug)
    const { artifact_url: name, digest_sha256: sha256 } = entry
    if (name === undefined)
      throw MarketplaceErrors.extension_archive_unavailable(`the catalog names no archive of ${shown(slug)}`)
    const authorKey = this.#authors.check(entry, authorOf(entry.name))
    const base = this.#base()
    return {
      name: entry.name,
      version: entry.version,
      address: addressOf(base, name),
      sha256: sha256?.toLowerCase(),
      authorKey,
      read: maxBytes =>
        fetchFrom(base, name, { clock: this.kernel.clock, maxBytes, timeoutMs: this.#timeoutMs() }).catch(error => {
          throw MarketplaceErrors.extension_archive_unavailable(messageOf(error))
        }),
    }
  }

  /** @throws Fault `marketplace_entry_not_found`, `marketplace_not_configured`, `marketplace_unavailable` */
  async #entry(kind: FeedKind, id: string, installedName?: string): Promise<readonly [Entry, MarketplaceEntry]> {
    const copy = await this.#copyOf(kind)
    const entry = copy.feed.entries.find(one => one.id === id)
    if (!entry) throw absent(copy, kind, id)
    const [wire] = await this.#wire(kind, [entry], installedName)
    return [entry, wire as MarketplaceEntry]
  }

  async #find(kind: MarketplaceKind, q: string) {
    if (kind === 'bundle') {
      const words = q.toLowerCase().split(/\s+/).filter(Boolean)
      const all = await bundleEntries(this.kernel)
      const items = all.filter(({ name, description }) =>
        words.every(word => `${name} ${description}`.toLowerCase().includes(word)),
      )
      return { items, stale: false }
    }
    const catalog = this.#catalog(kind)
    if (!catalog) return { items: [], stale: false, error_class: 'not_configured' }
    const { copy, stale, error, errorClass } = await catalog.read()
    if (await this.#lacks(catalog)) return { items: [], stale: false }
    return {
      items: copy?.index.search(q) ?? [],
      stale,
      ...(error !== undefined && { error }),
      ...(errorClass !== undefined && { error_class: errorClass }),
    }
  }

  async #wire(
    kind: MarketplaceKind,
    rows: readonly (Entry | MarketplaceEntry)[],
    installedName?: string,
  ): Promise<MarketplaceEntry[]> {
    if (kind === 'bundle' || rows.length === 0) return rows as MarketplaceEntry[]
    const installed = await this.#installed.of(kind)
    const facts = {
      registry: this.#value('marketplace.registry') || 'catalog',
      allowsUnverified: this.#allowsUnverified(),
      base: this.#base(),
      pinned: (slug: string) => this.skills.pins.keyOf(slug),
    }
    return (rows as readonly Entry[]).map(entry =>
      toWire(kind, entry, installed.get(installedName ?? (kind === 'extension' ? entry.name : entry.id)), facts),
    )
  }

  async #copyOf(kind: FeedKind): Promise<Copy> {
    const catalog = this.#catalog(kind)
    if (!catalog) throw MarketplaceErrors.marketplace_not_configured()
    const { copy, error } = await catalog.read()
    if (copy) return copy
    if (await this.#lacks(catalog))
      throw MarketplaceErrors.marketplace_entry_not_found(`the catalog has nothing of the kind ${kind}`)
    throw MarketplaceErrors.marketplace_unavailable(error)
  }

  /** Whether the catalog has another feed and never had this one: the kind is then empty, which is not a failure. */
  async #lacks(catalog: Catalog): Promise<boolean> {
    if (!catalog.isAbsent) return false
    const others = FeedKind.options.flatMap(kind => (kind === catalog.kind ? [] : (this.#catalog(kind) ?? [])))
    await Promise.all(others.map(other => other.read()))
    return others.some(other => other.isServed)
  }

  /** The catalog at the configured address; a changed address is another catalog. */
  #catalog(kind: FeedKind): Catalog | undefined {
    const where = this.#value('marketplace.catalog.base_url')
    if (where === '') return undefined
    const known = this.#catalogs.get(kind)
    if (known?.where === where) return known.catalog
    const catalog = new Catalog(this.kernel, kind, this.#base(), () => this.#timeoutMs())
    this.#catalogs.set(kind, { where, catalog })
    return catalog
  }

  #base(): Base {
    const where = this.#value('marketplace.catalog.base_url')
    const base = baseOf(where)
    if (base) return base
    throw MarketplaceErrors.marketplace_not_configured(
      where === ''
        ? undefined
        : `marketplace.catalog.base_url is ${shown(where)}: neither a folder nor an address of http or https without a password`,
    )
  }

  #timeoutMs(): number {
    return durationMs(this.kernel.config.get(CatalogTimeout)) ?? 10_000
  }

  #allowsUnverified(): boolean {
    return this.#read('extensions.trust.allow_unverified') === true
  }

  #value(path: string): string {
    const value = this.#read(path)
    return typeof value === 'string' ? value : ''
  }

  /** A setting; undefined while the plugin that owns it does not run. */
  #read(path: string): unknown {
    const configuration = this.kernel.needs.configuration.current
    if (!configuration?.known.some(entry => entry.path === path)) return undefined
    return configuration.explain(path).value
  }

  /** Finishes interrupted work of an earlier daemon; costs nothing if no skill was ever installed. */
  async recover(): Promise<void> {
    await this.skills
      .recover()
      .catch(error => this.kernel.log.warn(`the folder of skills could not be cleaned up: ${messageOf(error)}`))
  }
}

function kindOf(name: string): MarketplaceKind {
  const kind = v.safeParse(MarketplaceKind, name)
  if (kind.success) return kind.output
  throw MarketplaceErrors.marketplace_kind_unknown(`unknown kind: ${shown(name)}; use mcp, extension, skill or bundle`)
}

function checkScope({ scope, workspace_id: id }: Pick<MarketplaceKindQuery, 'scope' | 'workspace_id'>): void {
  if ((scope === 'workspace') === (id !== undefined)) return
  throw MarketplaceErrors.marketplace_query_invalid(
    id === undefined ? 'scope workspace needs workspace_id' : 'workspace_id belongs to scope workspace',
  )
}
