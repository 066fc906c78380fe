"""The same notes with FastAPI and sqlite3, for `scripts/benchmark notes --only twin`.

Basic authentication, the index, the list, one note, creation, over a file with a write-ahead log. `async def` without a
thread pool and responses encoded directly: the fastest forms in FastAPI.
"""
import os, secrets, sqlite3, uuid
from fastapi import Depends, FastAPI, HTTPException, Request
from fastapi.responses import JSONResponse
from fastapi.security import HTTPBasic, HTTPBasicCredentials

USERS = {"ada": "secret"}
database = sqlite3.connect(os.environ["NOTES_DB"], isolation_level=None)
database.executescript("""
    PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
    CREATE TABLE IF NOT EXISTS note (id INTEGER PRIMARY KEY, owner TEXT NOT NULL, uuid TEXT NOT NULL, revision TEXT NOT NULL,
        date TEXT, title TEXT, text TEXT, UNIQUE (owner, uuid));""")
app = FastAPI(openapi_url=None)


async def user(credentials: HTTPBasicCredentials = Depends(HTTPBasic())) -> str:
    if not secrets.compare_digest(USERS.get(credentials.username, "").encode(), credentials.password.encode()):
        raise HTTPException(403, "Invalid username/password")
    return credentials.username


@app.get("/api/notes-uuids/")
async def index(owner: str = Depends(user)):
    rows = database.execute("SELECT uuid, revision FROM note WHERE owner = ? ORDER BY id", (owner,))
    return JSONResponse([{"uuid": row[0], "revision": row[1]} for row in rows])


KEYS = ("uuid", "revision", "date", "title", "text")
SELECT = "SELECT uuid, revision, date, title, text FROM note WHERE owner = ?"


@app.get("/api/notes/")
async def notes(owner: str = Depends(user)):
    return JSONResponse([dict(zip(KEYS, row)) for row in database.execute(SELECT + " ORDER BY id", (owner,))])


@app.get("/api/notes/{name}/")
async def note(name: str, owner: str = Depends(user)):
    row = database.execute(SELECT + " AND uuid = ?", (owner, name)).fetchone()
    if row is None:
        raise HTTPException(404, "Not found")
    return JSONResponse(dict(zip(KEYS, row)), headers={"ETag": f'"{row[1]}"'})


@app.post("/api/notes/")
async def create(request: Request, owner: str = Depends(user)):
    fields = await request.json()
    row = (fields.get("uuid") or str(uuid.uuid4()), f"1-{uuid.uuid4()}", *(fields.get(key) for key in KEYS[2:]))
    database.execute("INSERT INTO note (owner, uuid, revision, date, title, text) VALUES (?, ?, ?, ?, ?, ?)", (owner, *row))
    return JSONResponse(dict(zip(KEYS, row)), 201)
