import { definePlugin, maybe, type Owned, type PluginKernel, token } from '../../../../kernel/plugin.js'
import { notEnded, Ownership } from '../../../../plugins/platform/ownership/api.js'

/** Things that can end: a table of boxes. */
export interface BoxesApi {
  has(id: string): boolean
  put(...ids: string[]): Promise<unknown>
  /** Removes a box in a transaction that ends it. */
  end(id: string): Promise<unknown>
  isEnded(id: string): boolean
  readonly kernel: Pick<PluginKernel, 'db'>
}
export const Boxes = token<BoxesApi>('acme.boxes@1')

class BoxesService implements BoxesApi {
  constructor(readonly kernel: PluginKernel<{ ownership: typeof Ownership }>) {
    kernel.needs.ownership.owns(Boxes, id => this.has(id))
  }

  has(id: string): boolean {
    return this.kernel.db.row('SELECT 1 FROM acme_boxes_box WHERE id = ?', [id]) !== undefined
  }

  put(...ids: string[]) {
    return this.kernel.db.tx(t => {
      for (const id of ids) t.run('INSERT INTO acme_boxes_box VALUES (?)', [id])
    })
  }

  end(id: string) {
    return this.kernel.db.tx(t => {
      t.run('DELETE FROM acme_boxes_box WHERE id = ?', [id])
      this.kernel.needs.ownership.tombstone(t, Boxes, id)
    })
  }

  isEnded(id: string): boolean {
    return this.kernel.needs.ownership.isEnded(Boxes, id)
  }
}

/** The plugin of the boxes. */
export const boxes = definePlugin({
  name: 'acme.boxes',
  version: '1.0.0',
  requires: { ownership: Ownership },
  provides: Boxes,
  service: async () => BoxesService,
}).surface({
  tables: [{ id: '001', sql: 'CREATE TABLE acme_boxes_box (id TEXT PRIMARY KEY) STRICT' }],
})

export type LabelRow = Readonly<Record<string, unknown>>

/** What a test does with the plugin of the labels. */
export interface Labels {
  /** Called for a row that goes. */
  forget?: (row: LabelRow) => Promise<void> | void
  ended?: (id: string) => void
  /** Set when the plugin has started. */
  kernel?: PluginKernel
  version?: string
}

const LABELS = `CREATE TABLE acme_labels_label (box TEXT, text TEXT NOT NULL) STRICT;
  CREATE INDEX acme_labels_label_box ON acme_labels_label (box);
  CREATE TABLE acme_labels_key (name TEXT PRIMARY KEY, box TEXT NOT NULL) STRICT`

/** A plugin with rows that hang on boxes: labels, and keys that stand for something outside of the database. */
export function labels(world: Labels) {
  class LabelsService {
    constructor(readonly kernel: PluginKernel) {
      world.kernel = kernel
    }
  }
  const owned: Owned<LabelsService>[] = [
    { by: Boxes, table: 'acme_labels_key', column: 'box', forget: (_, row) => world.forget?.(row) },
    { by: Boxes, table: 'acme_labels_label', column: 'box' },
    { by: Boxes, ended: (_, id) => world.ended?.(id) },
  ]
  return definePlugin({
    name: 'acme.labels',
    version: world.version ?? '1.0.0',
    requires: { ownership: maybe(Ownership) },
    service: async () => LabelsService,
  }).surface({ tables: [{ id: '001', sql: LABELS }], owned })
}

/** Adds labels and keys of a box. */
export function label({ kernel }: Labels, box: string, count: number, keys: readonly string[] = []): Promise<unknown> {
  if (!kernel) throw new Error('the plugin of the labels does not run')
  return kernel.db.tx(t => {
    for (let n = 0; n < count; n++) t.run('INSERT INTO acme_labels_label VALUES (?, ?)', [box, `${n}`])
    for (const key of keys) t.run('INSERT INTO acme_labels_key VALUES (?, ?)', [key, box])
  })
}

/** Labels of a box, and those that a statement sees that leaves out what has ended. */
export function counted({ kernel }: Labels, box: string): { labels: number; shown: number; keys: string[] } {
  if (!kernel) throw new Error('the plugin of the labels does not run')
  const count = (where: string) =>
    Number(kernel.db.row(`SELECT count(*) FROM acme_labels_label WHERE box = ? AND ${where}`, [box])?.[0])
  const keys = kernel.db.rows('SELECT name FROM acme_labels_key WHERE box = ? ORDER BY name', [box])
  return { labels: count('1'), shown: count(notEnded(Boxes, 'box')), keys: keys.map(([name]) => `${name}`) }
}
