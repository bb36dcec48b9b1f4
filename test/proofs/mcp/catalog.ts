import { createHash } from 'node:crypto'
import fs from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import { FILESYSTEM } from './world.js'

const EXAMPLE = fileURLToPath(new URL('../../../examples/marketplace', import.meta.url))

/** A catalog over HTTP. */
export interface Catalog {
  readonly url: string
  close(): void
}

/**
 * Serves the catalog of the examples, with two servers in place of its own: one that this machine starts without the registry, and
 * one that wants a login.
 * @param folder where its files are put
 */
export async function serveCatalog(folder: string, guarded: string, files: string): Promise<Catalog> {
  fs.cpSync(EXAMPLE, folder, { recursive: true })
  const entry = (id: string, mcp: object) => ({ id, name: id, description: `The server ${id}`, author: 'Authors', mcp })
  const entries = [
    entry('filesystem', { transport: 'stdio', command: process.execPath, args: [FILESYSTEM, files] }),
    entry('guarded', { transport: 'http', url: guarded, oauth: { client_id: '' } }),
  ]
  fs.writeFileSync(path.join(folder, 'mcp.json'), JSON.stringify({ version: 1, entries }))
  const server = createServer((request, response) => {
    const file = path.join(folder, path.normalize(new URL(request.url ?? '/', 'http://catalog').pathname))
    if (!fs.statSync(file, { throwIfNoEntry: false })?.isFile()) return void response.writeHead(404).end()
    const bytes = fs.readFileSync(file)
    response.writeHead(200, { etag: `"${createHash('sha256').update(bytes).digest('hex')}"` }).end(bytes)
  })
  await new Promise<void>(resolve => server.listen(0, '127.0.0.1', resolve))
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}/`,
    close: () => {
      server.close()
      server.closeAllConnections()
    },
  }
}
