import type { TaskContext } from '../../plugins/sessions/cli/task-context.js'
import type { Io } from '../io.js'
import type { Output } from '../show/output.js'

/** Commands that show a stream and take lines at the same time. */
const live: ReadonlySet<string> = new Set(['run', 'session prompt', 'session attach'])
/** Commands that start the daemon when none runs. */
const starting: ReadonlySet<string> = new Set(['run'])

/** Does a command show a stream, so that what it prints goes through a screen. */
export const isLive = (path: string) => live.has(path)

/** Does a command start the daemon when none runs. */
export const startsDaemon = (path: string) => starting.has(path)

/** What the command line gives a live command beyond what every command gets. */
export async function taskWorld(out: Output, screen: Io['screen']): Promise<Partial<TaskContext>> {
  const [{ MarkdownText }, { wrapText }] = await Promise.all([import('../show/markdown.js'), import('../show/text.js')])
  const isStyled = out.color('bold', 'x') !== 'x'
  const paint = isStyled ? { paint: out.color.bind(out) } : {}
  const isWrapped = Number.isFinite(out.width)
  return {
    wrap: wrapText,
    every(ms, fn) {
      const timer = setInterval(fn, ms).unref()
      return () => clearInterval(timer)
    },
    watchFolder: async root => (await import('./folder-changes.js')).watchFolder(root),
    ...(screen && { screen }),
    ...(isWrapped && {
      // One column stays free: a line that fills the terminal is broken twice by some.
      markdown: () => new MarkdownText({ write: text => out.text(text), width: () => out.width - 1, ...paint }),
    }),
  }
}
