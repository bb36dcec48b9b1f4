// Loaded first by the programs of dist/bin/ on Node 22 and later: V8 then keeps its compiled code for the next call.
import { existsSync } from 'node:fs'
import * as modules from 'node:module'
import { homedir } from 'node:os'
import { join } from 'node:path'

declare const __dirname: string

/** Node's default lies in the folder for temporary files, where every user of the machine could place code. */
const home = process.env.SVC_HOME || join(process.env.HOME || homedir(), '.svc')
/** `enableCompileCache` of a folder that cannot be written. */
const FAILED = 0
const { enableCompileCache } = modules as unknown as { enableCompileCache(folder: string): { status: number } }
const { status } = enableCompileCache(join(__dirname, '../compiled'))
if (status === FAILED && existsSync(home)) enableCompileCache(join(home, 'cache/compiled'))
