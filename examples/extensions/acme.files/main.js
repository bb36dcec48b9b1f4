import { createReadStream, createWriteStream } from 'node:fs'
import { mkdir, rename, rm, stat } from 'node:fs/promises'
import { pipeline } from 'node:stream/promises'
import { describe } from 'svc/kit'
import { created, defineErrors, definePlugin, ok, routeOf } from 'svc/plugin'
import * as v from 'valibot'

const Errors = defineErrors({
  acme_file_name: {
    status: 422,
    message: 'a name is letters, digits, dots and dashes, and begins with a letter or digit',
  },
  acme_file_not_found: { status: 404, message: 'no such file' },
})

class Files {
  constructor({ home, ids }) {
    this.ids = ids
    this.folder = home.path('files', 'acme.files')
    this.pathOf = name => {
      if (!/^[a-z0-9][a-z0-9.-]{0,99}$/i.test(name)) throw Errors.acme_file_name()
      return home.path('files', 'acme.files', name)
    }
  }

  /** Written beside its place and then moved there: a caller that hangs up midway leaves nothing. */
  async write(name, body, signal) {
    const file = this.pathOf(name)
    const part = `${this.folder}/.${this.ids.id('part')}`
    await mkdir(this.folder, { recursive: true, mode: 0o700 })
    try {
      await pipeline(body, createWriteStream(part, { mode: 0o600 }), { signal })
      await rename(part, file)
    } finally {
      await rm(part, { force: true })
    }
    return { name, bytes: (await stat(file)).size }
  }

  /** Read as fast as the caller takes it. */
  async read(name) {
    const file = this.pathOf(name)
    const found = await stat(file).catch(() => undefined)
    if (!found) throw Errors.acme_file_not_found()
    const headers = { 'content-disposition': `attachment; filename="${name}"`, 'content-length': String(found.size) }
    return ok(createReadStream(file), headers)
  }
}

const route = routeOf(describe('Files'))
const one = '/api/ext/acme.files/files/{name}'

export default definePlugin({ name: 'acme.files', version: '1.0.0', service: async () => Files }).surface({
  errors: [Errors],
  routes: [
    route({
      method: 'PUT',
      path: one,
      summary: 'Store a file',
      body: { as: 'stream', types: ['*/*'] },
      bodyLimit: 2 ** 30,
      replies: { 201: v.object({ name: v.string(), bytes: v.number() }) },
      handle: async (service, { params, body, signal }) => created(await service.write(params.name, body, signal)),
    }),
    route({
      method: 'GET',
      path: one,
      summary: 'Send a file',
      replies: { 200: { as: 'bytes', types: ['application/octet-stream'] } },
      handle: (service, { params }) => service.read(params.name),
    }),
  ],
})
