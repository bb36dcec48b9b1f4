import path from 'node:path'

/** A path that is visible to the processes in a sandbox. */
export type Mount =
  /** An existing path, read-only or writable. */
  | { readonly kind: 'read' | 'write'; readonly path: string }
  /** An empty folder in memory, or an empty file. */
  | { readonly kind: 'empty' | 'blank'; readonly path: string }
  | { readonly kind: 'link'; readonly path: string; readonly target: string }

/** Precedence of mounts at the same path, highest first. */
const ORDER = ['blank', 'write', 'read', 'link', 'empty'] as const

/** Whether `inner` is `outer` or lies below it; both paths are canonical. */
export const contains = (outer: string, inner: string): boolean =>
  inner === outer || inner.startsWith(outer.endsWith(path.sep) ? outer : outer + path.sep)

/**
 * Mounts in mount order: the longest mount path that contains a file determines its visibility. Each path occurs once. `blank`
 * hides a single file and has the highest precedence. A link within a visible folder needs no mount of its own.
 */
export function inOrder(mounts: readonly Mount[]): readonly Mount[] {
  const best = new Map<string, Mount>()
  for (const mount of mounts) {
    const other = best.get(mount.path)
    if (!other || ORDER.indexOf(mount.kind) < ORDER.indexOf(other.kind)) best.set(mount.path, mount)
  }
  const depth = ({ path: mountPath }: Mount) => mountPath.split(path.sep).length
  const sorted = [...best.values()].sort((a, b) => depth(a) - depth(b) || (a.path < b.path ? -1 : 1))
  const isThere = (link: Mount) => {
    const over = sorted.findLast(other => other.kind !== 'link' && contains(other.path, link.path))
    return over?.kind === 'read' || over?.kind === 'write'
  }
  return sorted.filter(mount => mount.kind !== 'link' || !isThere(mount))
}

/** The mounts with additional readable folders. */
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

/** The visibility of files through these mounts: writable or readable on the host, private to the sandbox (`own`), or hidden. */
export function sightOf(mounts: readonly Mount[]): (file: string) => 'write' | 'read' | 'own' | undefined {
  const ordered = inOrder(mounts)
  return file => {
    const over = ordered.findLast(mount => contains(mount.path, file))
    return over?.kind === 'write' || over?.kind === 'read' ? over.kind : over?.kind === 'empty' ? 'own' : undefined
  }
}

/** Arguments of bubblewrap for a mount. */
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
