import path from 'node:path'

/** One place of the file system that the processes in a sandbox see. */
export type Mount =
  /** What is there, readable or writable too. */
  | { readonly kind: 'read' | 'write'; readonly path: string }
  /** An empty folder in memory, or an empty file. */
  | { readonly kind: 'empty' | 'blank'; readonly path: string }
  | { readonly kind: 'link'; readonly path: string; readonly target: string }

/** At one place the first of them wins. */
const ORDER = ['blank', 'write', 'read', 'link', 'empty'] as const

/** Is `inner` the folder `outer` or something below it; both canonical. */
export const contains = (outer: string, inner: string): boolean =>
  inner === outer || inner.startsWith(outer.endsWith(path.sep) ? outer : outer + path.sep)

/**
 * What is mounted, in that order: the longest path that contains a file says how it is seen. Each place is named once, and
 * `blank`, which hides a single file, wins over everything. A link in a folder that is shown is there already.
 */
export function inOrder(mounts: readonly Mount[]): readonly Mount[] {
  const best = new Map<string, Mount>()
  for (const mount of mounts) {
    const other = best.get(mount.path)
    if (!other || ORDER.indexOf(mount.kind) < ORDER.indexOf(other.kind)) best.set(mount.path, mount)
  }
  const depth = ({ path: place }: Mount) => place.split(path.sep).length
  const sorted = [...best.values()].sort((a, b) => depth(a) - depth(b) || (a.path < b.path ? -1 : 1))
  const isThere = (link: Mount) => {
    const over = sorted.findLast(other => other.kind !== 'link' && contains(other.path, link.path))
    return over?.kind === 'read' || over?.kind === 'write'
  }
  return sorted.filter(mount => mount.kind !== 'link' || !isThere(mount))
}

/** The mounts with further folders that are read. */
export const showing = (
  mounts: readonly Mount[],
  folders: readonly string[],
  kept: readonly string[] = [],
): readonly Mount[] =>
  inOrder([
    ...mounts,
    ...folders.map((folder): Mount => ({ kind: 'read', path: folder })),
    ...kept.map((folder): Mount => ({ kind: 'write', path: folder })),
  ])

/** Whether a file is seen through these mounts. */
export function isSeen(mounts: readonly Mount[], file: string): boolean {
  const over = inOrder(mounts).findLast(mount => contains(mount.path, file))
  return over?.kind === 'read' || over?.kind === 'write'
}

/** How files are seen through these mounts: those of the host, to be written or read; `own` ones of the sandbox; or not at all. */
export function sightOf(mounts: readonly Mount[]): (file: string) => 'write' | 'read' | 'own' | undefined {
  const ordered = inOrder(mounts)
  return file => {
    const over = ordered.findLast(mount => contains(mount.path, file))
    return over?.kind === 'write' || over?.kind === 'read' ? over.kind : over?.kind === 'empty' ? 'own' : undefined
  }
}

/** A mount as bubblewrap is told of it. */
export function mountArgs(mount: Mount): string[] {
  switch (mount.kind) {
    case 'read':
      return ['--ro-bind', mount.path, mount.path]
    case 'write':
      return ['--bind', mount.path, mount.path]
    case 'empty':
      return ['--perms', '0700', '--tmpfs', mount.path]
    case 'blank':
      return ['--ro-bind', '/dev/null', mount.path]
    case 'link':
      return ['--symlink', mount.target, mount.path]
  }
}
