import path from 'node:path'
import type { Disk } from '../../../kernel/store/disk.js'
import type { Chance } from '../library/chance.js'

const SECTOR = 512

/** Contents by path. */
export type Files = ReadonlyMap<string, Buffer>

/** One change, in order; `before` is how long the trace was when the sync began: later changes may not be covered. */
type Change =
  | { readonly kind: 'write'; readonly inode: number; readonly offset: number; readonly bytes: Buffer }
  | { readonly kind: 'size'; readonly inode: number; readonly size: number }
  | { readonly kind: 'synced'; readonly inode: number; readonly before: number }
  | { readonly kind: 'link'; readonly file: string; readonly inode: number; readonly from?: string }
  | { readonly kind: 'unlink'; readonly file: string }
  | { readonly kind: 'folderSynced'; readonly folder: string; readonly before: number }

/** A disk in memory that records every change, and can tell what power loss may leave of it. */
export class PowerDisk implements Disk {
  readonly trace: Change[] = []
  readonly #start: Files
  readonly #inodes: Buffer[] = []
  readonly #names = new Map<string, number>()
  readonly #handles: (number | undefined)[] = []

  constructor(
    files: Files = new Map(),
    /** Turns of the event loop that a sync takes, at most. */
    readonly slowness = () => 1,
  ) {
    this.#start = files
    for (const [file, content] of files) this.#names.set(file, this.#inodes.push(content) - 1)
  }

  /** What a kill leaves: all that was written. */
  get files(): Files {
    return new Map([...this.#names].map(([file, inode]) => [file, this.#content(inode)]))
  }

  async open(file: string, mode: 'read' | 'update' | 'create' | 'replace'): Promise<number> {
    await turn()
    let inode = this.#names.get(file)
    if (inode === undefined) {
      if (mode === 'read' || mode === 'update') throw failure('ENOENT', file)
      inode = this.#inodes.push(Buffer.alloc(0)) - 1
      this.#do({ kind: 'link', file, inode })
    } else if (mode === 'replace') this.#do({ kind: 'size', inode, size: 0 })
    return this.#handles.push(inode) - 1
  }

  read(handle: number, into: Uint8Array, offset: number): number {
    return this.#content(this.#inode(handle)).copy(into, 0, offset)
  }

  pwrite(handle: number, bytes: Uint8Array, offset: number): number {
    this.#do({ kind: 'write', inode: this.#inode(handle), offset, bytes: Buffer.from(bytes) })
    return bytes.length
  }

  truncate(handle: number, size: number): void {
    this.#do({ kind: 'size', inode: this.#inode(handle), size })
  }

  async fsync(handle: number): Promise<void> {
    const inode = this.#inode(handle)
    const before = this.trace.length
    for (let turns = this.slowness(); turns > 0; turns--) await turn()
    this.#do({ kind: 'synced', inode, before })
  }

  stat(handle: number): { size: number; links: number } {
    const inode = this.#inode(handle)
    return {
      size: this.#content(inode).length,
      links: [...this.#names.values()].filter(other => other === inode).length,
    }
  }

  close(handle: number): void {
    this.#handles[handle] = undefined
  }

  rename(from: string, file: string): void {
    const inode = this.#names.get(from)
    if (inode === undefined) throw failure('ENOENT', from)
    this.#do({ kind: 'link', file, inode, from })
  }

  unlink(file: string): void {
    if (!this.#names.has(file)) throw failure('ENOENT', file)
    this.#do({ kind: 'unlink', file })
  }

  list(folder: string): string[] {
    return [...this.#names.keys()].filter(file => path.dirname(file) === folder).map(file => path.basename(file))
  }

  /** Folders need no making here; a real one is durable when it is made. */
  mkdir(): void {}

  async fsyncDir(folder: string): Promise<void> {
    const before = this.trace.length
    await turn()
    this.#do({ kind: 'folderSynced', folder, before })
  }

  #inode(handle: number): number {
    const inode = this.#handles[handle]
    if (inode === undefined) throw failure('EBADF', String(handle))
    return inode
  }

  #content(inode: number): Buffer {
    return this.#inodes[inode] as Buffer
  }

  #do(change: Change): void {
    this.trace.push(change)
    if (change.kind === 'write')
      this.#inodes[change.inode] = written(this.#content(change.inode), change.offset, change.bytes)
    if (change.kind === 'size') this.#inodes[change.inode] = resized(this.#content(change.inode), change.size)
    if (change.kind === 'link' || change.kind === 'unlink') rename(this.#names, change)
  }

  /** The files after the first `count` changes, all of them written. */
  after(count: number): Files {
    return this.#rebuilt(count, () => true)
  }

  /**
   * The files as power loss after the first `count` changes may leave them: what was synced; of the rest any sectors of 512
   * bytes, the size before or after, any names.
   */
  afterLoss(count: number, random: Chance): Files {
    const likely = random.of([0, 0.1, 0.5, 0.9, 1])
    return this.#rebuilt(count, () => random() < likely, random)
  }

  #rebuilt(count: number, arrives: () => boolean, random?: Chance): Files {
    const trace = this.trace.slice(0, count)
    const syncedBefore = new Map<number | string, number>()
    for (const change of trace) {
      if (change.kind === 'synced') syncedBefore.set(change.inode, change.before)
      if (change.kind === 'folderSynced') syncedBefore.set(change.folder, change.before)
    }
    const names = new Map([...this.#start.keys()].map((file, inode) => [file, inode]))
    const contents = [...this.#start.values()]
    const sizes = new Map<number, { synced: number; whole: number }>()
    const cut = new Set<number>()
    for (const [at, change] of trace.entries()) {
      if (change.kind === 'write' || change.kind === 'size') {
        const { inode } = change
        const synced = at < (syncedBefore.get(inode) ?? 0)
        let content = contents[inode] ?? Buffer.alloc(0)
        const whole = sizes.get(inode)?.whole ?? content.length
        if (change.kind === 'size') {
          if (synced || arrives()) content = resized(content, change.size)
          if (!synced) cut.add(inode)
        } else if (synced) content = written(content, change.offset, change.bytes)
        else {
          for (const [from, to] of sectors(change.offset, change.bytes.length)) {
            const bytes = change.bytes.subarray(from - change.offset, to - change.offset)
            if (arrives()) content = written(content, from, bytes)
          }
        }
        const size = change.kind === 'size' ? change.size : Math.max(whole, change.offset + change.bytes.length)
        sizes.set(inode, {
          synced: synced ? content.length : (sizes.get(inode)?.synced ?? contents[inode]?.length ?? 0),
          whole: size,
        })
        contents[inode] = content
      } else if (change.kind === 'link' || change.kind === 'unlink') {
        if (at < (syncedBefore.get(path.dirname(change.file)) ?? 0) || arrives()) rename(names, change)
      }
    }
    const files = new Map<string, Buffer>()
    for (const [file, inode] of names) {
      const content = contents[inode] ?? Buffer.alloc(0)
      const { synced, whole } = sizes.get(inode) ?? { synced: content.length, whole: content.length }
      const size = random === undefined || cut.has(inode) ? content.length : random.of([content.length, synced, whole])
      files.set(file, resized(content, size))
    }
    return files
  }
}

/** A disk whose syncs of some files (a folder ends with a slash) do nothing: the mutant that the proof must find out. */
export function withoutSyncs(disk: Disk, dropped: (file: string) => boolean): Disk {
  const files = new Map<number, string>()
  return wrapDisk(disk, async (name, args, call) => {
    const [at] = args
    if (name === 'fsync' && dropped(files.get(at as number) ?? '')) return
    if (name === 'fsyncDir' && dropped(`${at}/`)) return
    const result = await call()
    if (name === 'open') files.set(result as number, String(at))
    return result
  })
}

/** A disk whose every call goes through `each`, which may do something else than `call`. */
export function wrapDisk(
  disk: Disk,
  each: (name: keyof Disk, args: readonly unknown[], call: () => unknown) => unknown,
): Disk {
  return new Proxy(disk, {
    get(target, name: keyof Disk) {
      // What a disk does not offer stays absent: the store asks for it by that.
      if (target[name] === undefined) return undefined
      return (...args: never[]) =>
        each(name, args, () => (target[name] as (...args: never[]) => unknown).apply(target, args))
    },
  })
}

function turn(): Promise<void> {
  return new Promise(resolve => setImmediate(resolve))
}

function failure(code: string, what: string): Error {
  return Object.assign(new Error(`${code}: ${what}`), { code })
}

function rename(names: Map<string, number>, change: Change & { readonly kind: 'link' | 'unlink' }): void {
  if (change.kind === 'unlink') names.delete(change.file)
  else {
    if (change.from !== undefined) names.delete(change.from)
    names.set(change.file, change.inode)
  }
}

function written(content: Buffer, offset: number, bytes: Buffer): Buffer {
  const copy = resized(content, Math.max(content.length, offset + bytes.length))
  copy.set(bytes, offset)
  return copy
}

function resized(content: Buffer, size: number): Buffer {
  const copy = Buffer.alloc(size)
  content.copy(copy)
  return copy
}

function* sectors(offset: number, length: number): Generator<[number, number]> {
  for (let from = offset, to = from; from < offset + length; from = to) {
    to = Math.min(offset + length, (Math.floor(from / SECTOR) + 1) * SECTOR)
    yield [from, to]
  }
}
