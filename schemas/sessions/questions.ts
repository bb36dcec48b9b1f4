/** Preview in a question to a person: the command to run and the changes to files. */
import * as v from 'valibot'
import { Integer } from '../kernel/common.js'

/** The change of one file. */
export const QuestionDiff = v.object({
  path: v.string(),
  is_new: v.optional(v.boolean()),
  /** All lines, including hidden ones. */
  added: Integer,
  removed: Integer,
  /** Hunks of a unified diff, without file headers. */
  patch: v.string(),
  /** Lines of the diff left out of `patch`. */
  hidden_lines: Integer,
})
export type QuestionDiff = v.InferOutput<typeof QuestionDiff>

/** Parts left out of a question; a pending interaction still has all of them. */
export const QuestionHidden = v.object({
  /** Files without any diff. */
  files: Integer,
  /** Hidden diff lines, including those of files without a diff. */
  lines: Integer,
  /** Hidden characters of the command, the title and long lines. */
  characters: Integer,
})
export type QuestionHidden = v.InferOutput<typeof QuestionHidden>

/** Members of an interaction that describe its subject. */
export const questionMembers = {
  command: v.optional(v.string()),
  paths: v.optional(v.array(v.string())),
  /** Affected paths outside of the workspace. */
  outside: v.optional(v.array(v.string())),
  diffs: v.optional(v.array(QuestionDiff)),
  hidden: v.optional(QuestionHidden),
}
