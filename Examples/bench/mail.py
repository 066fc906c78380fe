"""An IMAP server (Dovecot), and the messages at both ends, for programs that synchronise mail."""
import getpass, grp, pathlib, pwd, shutil

from bench import free_port

MESSAGE = "From: ada@test\nTo: ben@test\nSubject: {name}\nMessage-ID: <{name}@test>\nDate: Thu, 1 Jan 2026 10:00:00 +0000\n\n{text}\n"


def dovecot(bench):
    """Starts Dovecot with the user ada. Returns its port and the folder of her mail."""
    folder, port = bench.own("dovecot"), free_port()
    entry = pwd.getpwnam(bench.user or getpass.getuser())
    group = grp.getgrgid(entry.pw_gid).gr_name
    bench.write("dovecot.conf", f"""protocols = imap
listen = 127.0.0.1
base_dir = {folder}/run
state_dir = {folder}/state
log_path = {folder}/log
ssl = no
disable_plaintext_auth = no
default_internal_user = {entry.pw_name}
default_internal_group = {group}
default_login_user = {entry.pw_name}
first_valid_uid = 1
first_valid_gid = 1
mail_location = maildir:{folder}/mail
namespace {{
  inbox = yes
}}
service imap-login {{
  chroot =
  inet_listener imap {{
    port = {port}
  }}
  inet_listener imaps {{
    port = 0
  }}
}}
service anvil {{
  chroot =
}}
service stats {{
  chroot =
}}
passdb {{
  driver = static
  args = password=x
}}
userdb {{
  driver = static
  args = uid={entry.pw_uid} gid={entry.pw_gid} home={folder}
}}
""")
    bench.start("dovecot", "-F", "-c", bench.folder / "dovecot.conf", port=port, user=bench.user)
    return port, folder / "mail"


def deliver(maildir, name, size=500, owner=None):
    """Puts a new message into a Maildir."""
    maildir = pathlib.Path(maildir)
    for part in ["cur", "new", "tmp"]:
        (maildir / part).mkdir(parents=True, exist_ok=True)
    path = maildir / "new" / f"1767261600.{name}.bench"
    path.write_text(MESSAGE.format(name=name, text="x" * 70 + ("\n" + "x" * 70) * (size // 71)))
    if owner:
        for each in [maildir, *maildir.rglob("*")]:
            shutil.chown(each, owner)


def subjects(maildir):
    """Returns the subjects of the messages of a Maildir."""
    found = []
    for path in [*pathlib.Path(maildir).glob("cur/*"), *pathlib.Path(maildir).glob("new/*")]:
        found += [line[9:].strip() for line in path.read_text(errors="replace").splitlines() if line.startswith("Subject: ")]
    return sorted(found)
