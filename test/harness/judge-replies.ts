import { existsSync, readFileSync } from 'node:fs'
import { validateReply } from './contract.js'

interface Watched {
  readonly method: string
  readonly path: string
  readonly status: number
  readonly text: string
}

/** What is wrong, by the contract, with the replies that `watch-replies.mjs` wrote into a file: a line each, none twice. */
export function judgeReplies(file: string): string[] {
  if (!existsSync(file)) return []
  const wrong = new Set<string>()
  for (const line of readFileSync(file, 'utf8').split('\n')) {
    const reply = parse(line) as Watched | undefined
    if (reply === undefined) continue
    const { method, path, status, text } = reply
    for (const fault of validateReply(method, path, status, text === '' ? undefined : (parse(text) ?? text)))
      wrong.add(`${method} ${path} ${status}: ${fault}`)
  }
  return [...wrong]
}

/** A line may be cut short by a kill. */
function parse(text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}
