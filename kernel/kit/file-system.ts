/** How a file system says that it does not have what was asked of it: links, syncs, modes, locks. */
const UNSUPPORTED = ['EPERM', 'ENOTSUP', 'EOPNOTSUPP', 'ENOSYS', 'EINVAL', 'ENOLCK']

/** Whether a call failed because the file system cannot do it at all. */
export const isUnsupported = (error: unknown): boolean =>
  UNSUPPORTED.includes(String((error as NodeJS.ErrnoException | undefined)?.code))
