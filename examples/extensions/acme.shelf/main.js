// Books of a workspace: a table, the routes and commands of a noun, and a tool for agents.
import { collectionOf, column, command, describe, runsCode, table, text, tool } from 'svc/kit'
import { defineErrors, definePlugin } from 'svc/plugin'
import { Workspaces } from 'svc/plugins/workspaces'
import * as v from 'valibot'

const Errors = defineErrors({
  acme_book_not_found: { status: 404, message: 'no such book', next: command('acme book list') },
  acme_book_changed: { status: 409, message: 'the book is another by now', next: command('acme book list') },
  acme_book_lent: { status: 409, message: 'the book is lent', next: command('acme book list') },
})

const books = table('acme_shelf_book', {
  id: column.text(),
  title: column.text(),
  workspace_id: column.text().optional(),
  lent_to: column.text().optional(),
  version: column.integer(),
  created_at: column.time(),
})

const Book = v.object({
  id: v.string(),
  title: v.string(),
  workspace_id: v.optional(v.string()),
  lent_to: v.optional(v.string()),
  version: v.number(),
  created_at: v.string(),
})

class Shelf {
  constructor(kernel) {
    this.kernel = kernel
  }

  list() {
    return books.all(this.kernel.db, {}, 'ORDER BY created_at').map(row => books.wire(row, Book))
  }

  get(id) {
    const row = books.get(this.kernel.db, { id })
    if (!row) throw Errors.acme_book_not_found(`there is no book ${id}`)
    return row
  }

  async add({ title, workspace }) {
    const { ids, clock, db, needs } = this.kernel
    // A caller gives an id, a name or a path; the row has the id, by which it goes with its workspace.
    const place = workspace === undefined ? {} : { workspace_id: (await needs.workspaces.find(workspace)).id }
    const row = { id: ids.id('book'), title, ...place, version: 1, created_at: clock.now() }
    await db.tx(t => books.insert(t, row))
    return row
  }

  /** @param seen version that the caller saw, where it names one */
  async change(id, changes, seen) {
    await this.kernel.db.tx(t => {
      const { version } = this.get(id)
      if (seen !== undefined && seen !== version) throw Errors.acme_book_changed(`the version of ${id} is ${version}`)
      books.update(t, { id }, { ...changes, version: version + 1 })
    })
    return this.get(id)
  }

  async remove(id, seen) {
    await this.kernel.db.tx(t => {
      const { version } = this.get(id)
      if (seen !== undefined && seen !== version) throw Errors.acme_book_changed(`the version of ${id} is ${version}`)
      books.delete(t, { id })
    })
  }

  async lend(id, to) {
    const { lent_to: holder, version } = this.get(id)
    if (holder !== undefined) throw Errors.acme_book_lent(`${holder} has the book ${id}`)
    return this.change(id, { lent_to: to }, version)
  }
}

/** What the routes of a book share; the noun begins with the vendor, as every command of an extension does. */
const book = collectionOf(
  describe('Shelf'),
  runsCode(false),
)({
  path: '/api/ext/acme.shelf/books',
  key: 'id',
  noun: 'acme book',
  one: [v.object({ book: Book }), 'book'],
  many: [v.object({ books: v.array(Book) }), 'books'],
  show: ['id', 'title', { of: 'lent_to', header: 'Lent to' }, 'created_at~ago'],
  fields: ['id', 'title', 'workspace_id', 'lent_to', 'version', 'created_at~time'],
  missing: Errors.acme_book_not_found,
  at: {
    member: 'expected_version',
    schema: v.optional(v.pipe(v.number(), v.integer())),
    conflict: Errors.acme_book_changed,
  },
})

const shown = row => ({ book: books.wire(row, Book) })

export default definePlugin({
  name: 'acme.shelf',
  version: '1.0.0',
  requires: { workspaces: Workspaces },
  service: async () => Shelf,
}).surface({
  errors: [Errors],
  tables: [
    {
      id: '001-book',
      sql: `CREATE TABLE acme_shelf_book (id TEXT NOT NULL PRIMARY KEY, title TEXT NOT NULL, workspace_id TEXT, lent_to TEXT,
        version INTEGER NOT NULL, created_at INTEGER NOT NULL) STRICT`,
    },
  ],
  owned: [{ by: Workspaces, table: 'acme_shelf_book', column: 'workspace_id' }],
  routes: [
    book.list({
      summary: 'List books',
      empty: 'no books; add one: svc acme book create <title>',
      with: [tool('book_list', ['catalog'])],
      handle: service => ({ books: service.list() }),
    }),
    book.get({ summary: 'Show a book', handle: (service, { params }) => shown(service.get(params.id)) }),
    book.create({
      summary: 'Add a book',
      body: v.strictObject({ title: text(200), workspace: v.optional(v.string()) }),
      cli: { args: [{ name: 'title', in: 'body' }], workspace: 'workspace' },
      handle: async (service, { body }) => shown(await service.add(body)),
    }),
    book.update({
      summary: 'Change the title of a book',
      body: v.strictObject({ title: text(200) }),
      handle: async (service, { params, body }, seen) => shown(await service.change(params.id, body, seen)),
    }),
    book.delete({ summary: 'Delete a book', handle: (service, { params }, seen) => service.remove(params.id, seen) }),
    book.action('lend', {
      summary: 'Lend a book',
      body: v.strictObject({ to: text(100) }),
      throws: [Errors.acme_book_lent],
      handle: async (service, { params, body }) => shown(await service.lend(params.id, body.to)),
    }),
  ],
})
