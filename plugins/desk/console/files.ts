import { existsSync } from 'node:fs'
import path from 'node:path'
import { fileURLToPath } from 'node:url'
import * as v from 'valibot'
import { readRegularFile } from '../../../kernel/kit/read-file.js'
import { ConsoleErrors } from './api.js'

const MAX_BYTES = 4 * 1024 * 1024
const YEAR_S = 31_536_000

/** `files.json`, written by the build: all files of the console. */
const Listed = v.object({
  files: v.record(
    v.string(),
    v.object({
      type: v.string(),
      etag: v.string(),
      hashed: v.boolean(),
      encodings: v.array(v.picklist(['br', 'gzip'])),
    }),
  ),
})
type Listed = v.InferOutput<typeof Listed>

const SUFFIX = { br: '.br', gzip: '.gz' } as const

/** The page runs only its own scripts and connects only to its daemon. */
const POLICY = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' data:",
  "font-src 'self'",
  "manifest-src 'self'",
  "worker-src 'self'",
  "frame-ancestors 'none'",
  "base-uri 'none'",
  "form-action 'none'",
].join('; ')

const HEADERS = {
  'content-security-policy': POLICY,
  'x-content-type-options': 'nosniff',
  'referrer-policy': 'no-referrer',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  vary: 'accept-encoding',
}

/** The service worker. The page is outside of its folder, so it needs a wider scope. */
const WORKER = 'worker.js'

export interface FileRequest {
  readonly accepts?: string | undefined
  /** `If-None-Match` of the request. */
  readonly known?: string | undefined
}

/** The built files of the console. A file in the folder that the build did not list is never served. */
export class Files {
  #listed: Promise<Listed> | undefined
  /** Contents by file name. The build's list limits their number. */
  readonly #contents = new Map<string, Promise<Buffer>>()

  constructor(private readonly folder = builtFolder()) {}

  async serve(name: string, { accepts = '', known }: FileRequest) {
    const { files } = await this.#list()
    const file = Object.hasOwn(files, name) ? files[name] : undefined
    if (!file) throw ConsoleErrors.console_file_not_found()
    const headers = {
      ...HEADERS,
      'content-type': file.type,
      etag: file.etag,
      ...(name === WORKER && { 'service-worker-allowed': '/console' }),
      'cache-control': file.hashed ? `public, max-age=${YEAR_S}, immutable` : 'no-cache',
    }
    if (known?.split(/, */).includes(file.etag)) return { status: 304 as const, body: undefined, headers }
    const encoding = file.encodings.find(one => new RegExp(`(?:^|[ ,])${one}(?:$|[ ,])`).test(accepts))
    const body = await this.#read(encoding ? name + SUFFIX[encoding] : name)
    const more = { 'content-length': String(body.length), ...(encoding && { 'content-encoding': encoding }) }
    return { status: 200 as const, body, headers: { ...headers, ...more } }
  }

  #list(): Promise<Listed> {
    this.#listed ??= this.#read('files.json').then(bytes => v.parse(Listed, JSON.parse(bytes.toString())))
    this.#listed.catch(() => {
      this.#listed = undefined
    })
    return this.#listed
  }

  #read(name: string): Promise<Buffer> {
    const known = this.#contents.get(name)
    if (known) return known
    const read = readRegularFile(path.join(this.folder, name), { maxBytes: MAX_BYTES }).then(bytes => {
      if (bytes) return bytes
      throw ConsoleErrors.console_not_built()
    })
    this.#contents.set(name, read)
    read.catch(() => this.#contents.delete(name))
    return read
  }
}

/**
 * The folder of the built console, `dist/console` of the package that contains this code, whether this code is built or
 * not.
 */
function builtFolder(): string {
  let folder = path.dirname(fileURLToPath(import.meta.url))
  while (!existsSync(path.join(folder, 'package.json')) && path.dirname(folder) !== folder)
    folder = path.dirname(folder)
  return path.join(folder, 'dist', 'console')
}
