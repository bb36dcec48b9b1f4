import { token } from '../../../kernel/plugin.js'
import type { TextFile } from './text-file.js'

export { recoverFile, succeeds, takeName, takenName } from './recover.js'
export { replaceText, type TextFile, textFile, unwritten } from './text-file.js'

/** A small text file below the home, by the parts of its path, written durably and atomically. */
export const Files = token<(...path: string[]) => TextFile>('files@1')
